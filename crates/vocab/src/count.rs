//! A number that was read or tallied, exactly.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign};

/// How often something happened. A `Count` is exact; what is inferred from it is an estimate.
///
/// Addition saturates: a profile that has run for centuries is wrong in its last digit, not in all.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Count(pub u64);

impl Count {
    /// Nothing happened, and we looked.
    pub const ZERO: Count = Count(0);
    /// Once.
    pub const ONE: Count = Count(1);

    /// The count as a floating-point number, for estimators.
    pub fn as_f64(self) -> f64 {
        self.0 as f64
    }
}

impl Add for Count {
    type Output = Count;
    fn add(self, other: Count) -> Count {
        Count(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Count {
    fn add_assign(&mut self, other: Count) {
        *self = *self + other;
    }
}

impl Sum for Count {
    fn sum<I: Iterator<Item = Count>>(counts: I) -> Count {
        counts.fold(Count::ZERO, Add::add)
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addition_saturates_instead_of_wrapping() {
        assert_eq!(Count(u64::MAX) + Count::ONE, Count(u64::MAX));
        assert_eq!([Count(1), Count(2), Count(3)].into_iter().sum::<Count>(), Count(6));
    }
}
