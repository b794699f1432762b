//! Fleet: what its users ask and say, and the loops beside them.

mod api;
