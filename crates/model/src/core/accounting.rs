//! What a core that keeps an account can be asked.

use metrology::Estimate;

use super::Account;
use crate::event::{Counts, Event};
use crate::stream::CoreListener;

/// How an estimate came about.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sampling {
    /// Windows measured.
    pub windows: u64,
    /// Instructions that were timed, whether measured or only leading up to a window.
    pub timed: u64,
    /// How much more cycles there would be, as a share, had all windows been warmed for four times as
    /// long: from windows that were looked at twice. None where nothing was skipped, so that warming
    /// was never short.
    pub longer_warming: Option<Estimate>,
    /// Cycles that were taken off what windows show, since their predictor had not heard of everything.
    pub taken_off: f64,
}

/// A listener with an account.
pub trait Accounting: CoreListener {
    /// Lets everything in flight retire, so that the account is whole.
    fn settle_all(&mut self);

    /// Every event's count so far, estimated where not everything was timed.
    fn counts(&self) -> Counts;

    /// The account by instruction of what was timed.
    fn account(&self) -> &Account;

    /// How often each static instruction ran, timed or not.
    fn runs(&self) -> Vec<u64> {
        self.account().runs()
    }

    /// The count of an event with its uncertainty; none where too little was timed to tell.
    fn estimate(&self, event: Event) -> Option<Estimate> {
        Some(Estimate::exact(self.counts()[event] as f64))
    }

    /// How the counts were estimated; none where everything was timed.
    fn sampling(&self) -> Option<Sampling> {
        None
    }
}
