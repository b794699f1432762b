//! Clusters of machines that boot a systemd of their own and run fleetd as it is installed: what becomes of units when
//! users, services, machines, networks and etcd act. `make test-cluster` runs these alone.

mod cluster;
mod life_cycle;
mod loss;
mod outages;
mod partition;
mod placement;
mod scale;
mod services;
