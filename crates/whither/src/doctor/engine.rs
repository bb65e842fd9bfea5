//! The engines that feed a modelled core: our own, and qemu-user with plugins.

use tracer::launch::{QemuError, can_run_natively, probe};

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Engines {
    /// Whether our own runs here.
    pub(crate) native: bool,
    pub(crate) qemu: QemuState,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum QemuState {
    /// No qemu-x86_64 on the PATH.
    Missing,
    /// There, but built without `-plugin`.
    WithoutPlugins,
    /// There, but its plugins are of a version that we do not speak; its own.
    OtherPlugins(String),
    /// There, with plugins; its version.
    Ready(String),
    /// There, but it would not say anything.
    Broken(String),
}

/// Asks as a launch would, so that what is said here is what a launch will find.
pub(crate) fn find_engines() -> Engines {
    let qemu = match probe() {
        Ok(qemu) => QemuState::Ready(qemu.version),
        Err(QemuError::Missing) => QemuState::Missing,
        Err(QemuError::NoPlugins(_)) => QemuState::WithoutPlugins,
        Err(QemuError::OtherInterface(_, version)) => QemuState::OtherPlugins(version),
        Err(QemuError::Unusable(_, why)) => QemuState::Broken(why.to_string()),
    };
    Engines { native: can_run_natively(), qemu }
}
