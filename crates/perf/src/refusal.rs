//! Why the kernel said no.

use std::{fmt, io};

/// Why an interface cannot be used. 'Not permitted' has a remedy on this machine; 'not there'
/// needs another machine, kernel or setting of the hypervisor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// EACCES: the kernel knows the event and this user may not have it.
    Forbidden,
    /// EPERM: a capability is missing, or a seccomp filter answered.
    Privilege,
    /// ENOENT, EOPNOTSUPP, ENODEV: no such event on this machine.
    NoSuchEvent,
    /// ENOSYS: no such system call.
    NoSuchCall,
    /// EBUSY: another user holds the counter.
    Busy,
    /// EMFILE, ENFILE, ENOMEM, ENOSPC: out of descriptors, locked memory or slots.
    Exhausted,
    /// ESRCH: the process is gone.
    ProcessGone,
    /// EINVAL, E2BIG: the kernel does not understand the request; it is older than we hoped.
    NotUnderstood,
    /// Anything else, by number.
    Other(i32),
}

impl Refusal {
    /// From the `errno` of the call that just failed.
    pub(crate) fn last() -> Refusal {
        Refusal::from_errno(io::Error::last_os_error().raw_os_error().unwrap_or(0))
    }

    /// From a number.
    pub fn from_errno(errno: i32) -> Refusal {
        match errno {
            libc::EACCES => Refusal::Forbidden,
            libc::EPERM => Refusal::Privilege,
            libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV | libc::ENXIO => Refusal::NoSuchEvent,
            libc::ENOSYS => Refusal::NoSuchCall,
            libc::EBUSY => Refusal::Busy,
            libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::ENOSPC => Refusal::Exhausted,
            libc::ESRCH => Refusal::ProcessGone,
            libc::EINVAL | libc::E2BIG => Refusal::NotUnderstood,
            other => Refusal::Other(other),
        }
    }

    /// Whether permission, rather than the thing itself, is missing.
    pub fn is_permission(self) -> bool {
        matches!(self, Refusal::Forbidden | Refusal::Privilege)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Refusal::Forbidden => "not permitted for this user",
            Refusal::Privilege => "not permitted: a capability is missing or a filter forbids it",
            Refusal::NoSuchEvent => "not there on this machine",
            Refusal::NoSuchCall => "the kernel has no such system call",
            Refusal::Busy => "another user holds the counter",
            Refusal::Exhausted => "out of file descriptors, locked memory or slots",
            Refusal::ProcessGone => "the process is gone",
            Refusal::NotUnderstood => "this kernel does not understand the request",
            Refusal::Other(errno) => {
                return write!(f, "{}", io::Error::from_raw_os_error(*errno));
            }
        };
        f.write_str(text)
    }
}

impl std::error::Error for Refusal {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permission_and_absence_are_told_apart() {
        let judged = [libc::EACCES, libc::EPERM, libc::ENOENT, libc::ENOSYS]
            .map(|errno| Refusal::from_errno(errno).is_permission());
        assert_eq!(judged, [true, true, false, false]);
    }
}
