//! Having the host bring what will be needed soon.
//!
//! Tags of a modelled last level are more than the host's near caches hold. Where it is known early which
//! come next, the host can have them on their way while it does something else; a plain read would make
//! it wait.

/// Has the host bring the line of its memory that a value lies in. Nothing is read, and nothing changes.
#[inline]
#[allow(unsafe_code, reason = "the hint itself; there is no safe one")]
pub(super) fn bring<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a hint, which reads nothing; SSE is part of every x86-64 processor.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast::<i8>()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}
