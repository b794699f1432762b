//! Clusters of machines that boot a systemd of their own and run fleetd as it is installed: the effects of
//! users, services, machines, networks and etcd on units. Only `make test-cluster` runs these tests: each boots machines.
//!
//! The older fleet had functional tests on such clusters. Each of them has its counterpart:
//!
//! | older test | shown by |
//! | --- | --- |
//! | `UnitRunnable` | `life_cycle`: a unit runs |
//! | `UnitSubmit`, `UnitLoad`, `UnitStart` | `life_cycle`: submitted, loaded, started, each undone and done again |
//! | `UnitSubmitReplace`, `UnitLoadReplace`, `UnitStartReplace` | `life_cycle`: replaced |
//! | `UnitRestart` | `life_cycle`: restarted (by `loaded`, then `launched`) |
//! | `UnitSSHActions`, `UnitCat`, `UnitStatus` | `command_line` (status and journal through the API); `ssh`; when ssh is taken instead: `crates/fleetctl/tests/it/remote.rs` |
//! | `ListUnitFilesOrder` | `life_cycle`: submitted; `crates/fleet/tests/it/api/pages.rs`; as `fleetctl` prints it: `command_line` |
//! | `ScheduleMachineOf` | `services::a_leaving_machine_removes_its_states_and_pairs_move` |
//! | `ScheduleConflicts`, `ScheduleOneWayConflict`, `ScheduleMultipleConflicts` | `tests/vectors/fleet_engine.json` (`crates/fleet-model/src/schedule/tests`) |
//! | `ScheduleReplace`, `ScheduleCircularReplace` | `placement`: a unit replaces another; a circle is refused: `crates/fleet/tests/it/units.rs` |
//! | `ScheduleConditionMachineID` | `tests/vectors/fleet_engine.json`; `outages` places units by it |
//! | `ScheduleGlobalUnits`, `ScheduleGlobalConflicts` | `placement`: global units, global units that conflict |
//! | `TemplatesWithSpecifiersInMetadata` | `crates/fleet-model/src/unit/tests/fleet_section.rs`; `command_line`: `start --block-attempts` |
//! | `DynamicClusterNewMemberUnitMigration`, `DynamicClusterMemberReboot` | `loss::only_the_unit_of_a_lost_member_moves_and_none_moves_back`, `loss::a_machine_that_boots_again_at_once_runs_no_unit_twice` |
//! | `NodeShutdown` | `services::a_leaving_machine_removes_its_states_and_pairs_move` |
//! | `DetectMachineId` | `loss::a_second_machine_with_an_id_waits_for_the_first` |
//! | `SingleNodeConnectivityLoss` | `partition::a_machine_alone_that_loses_etcd_stops_nothing` |
//! | `Shutdown`, `ShutdownVsMonitor` | `services::fleetd_ends_in_time_without_etcd`, `stopping` |
//! | `ReconfigureServer` | `services::a_reload_keeps_the_process_and_a_later_stop_is_clean`, `reload` |
//! | `InstallUnit` | `life_cycle`: sidekick |
//! | `FleetctlWithEnv` | `command_line` |
//! | `KnownHostsVerification`, `TunnelScheduleBatchUnits` | `ssh`; `crates/fleetctl/tests/it/remote.rs`: what the system's `ssh` is run with |
//! | `ClientVersionFlag`, `VersionHelpOutput`, `HelpFlag` | `crates/fleetctl/tests/it/command_line.rs` |
//! | `MachinesList` and bad page tokens | `crates/fleet/tests/it/api/pages.rs` |
//! | `MachinesPatchAddModify`, `MachinesPatchDelete`, `MachinesPatchBad` | `placement`: patched metadata; `crates/fleet/tests/it/api/machines.rs` |
//! | `SystemdUnitFlow` | `life_cycle`: as systemd sees it |

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::missing_panics_doc,
    reason = "a test that fails, panics"
)]

mod cluster;
mod command_line;
mod demo;
#[path = "../it/fleet_socket.rs"]
mod fleet_socket;
mod followers;
mod journal;
mod life_cycle;
#[path = "../it/local.rs"]
mod local;
mod loss;
mod outages;
mod partition;
mod placement;
mod resources;
mod scale;
mod services;
mod ssh;
