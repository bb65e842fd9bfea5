//! A span whose counts may merge.

/// A span of time on one host in which counts of the same image, offset and event add up.
///
/// Two epochs are the same span only if host and start agree; profiles of different epochs are
/// compared, never added by accident.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Epoch {
    /// The host that collected it.
    pub host: String,
    /// When it began, in nanoseconds since 1970.
    pub began_unix_ns: u64,
}
