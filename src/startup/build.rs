//! This program.

use hyperfleet_server_kit::program::Build;

pub(super) const BUILD: Build = Build {
    component: "api",
    version: env!("CARGO_PKG_VERSION"),
    commit: env!("HYPERFLEET_BUILD_COMMIT"),
    time: env!("HYPERFLEET_BUILD_TIME"),
    compiler: env!("HYPERFLEET_BUILD_RUSTC"),
};
