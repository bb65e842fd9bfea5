//! What a core that keeps an account can be asked.

use super::Account;
use crate::event::Counts;
use crate::stream::CoreListener;

/// A listener with an account.
pub trait Accounting: CoreListener {
    /// Lets everything in flight retire, so that the account is whole.
    fn settle_all(&mut self);

    /// Every event's count so far.
    fn counts(&self) -> Counts;

    /// The account by instruction.
    fn account(&self) -> &Account;
}
