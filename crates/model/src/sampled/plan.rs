//! How to sample.

/// How to sample.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Plan {
    /// Instructions at the start that are all timed.
    pub certain_instructions: u64,
    /// Instructions measured in a window.
    pub window_instructions: u64,
    /// Instructions timed before each window and not measured.
    pub prime_instructions: u64,
    /// The smallest stratum.
    pub stratum_instructions: u64,
    /// The largest stratum.
    pub stratum_max_instructions: u64,
    /// The relative half-width, at 95 %, of the cycles that is good enough.
    pub error: f64,
    /// Where the windows fall.
    pub seed: u64,
}

impl Default for Plan {
    fn default() -> Plan {
        Plan {
            certain_instructions: 20_000_000,
            window_instructions: 10_000,
            prime_instructions: 2_000,
            stratum_instructions: 50_000,
            stratum_max_instructions: 100_000_000,
            error: 0.03,
            seed: 1,
        }
    }
}
