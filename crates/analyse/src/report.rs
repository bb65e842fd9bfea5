//! What the analysis found out about a procedure.
//!
//! ```text
//! samples = frequency × (execution + static stalls) + dynamic stalls + what is left
//!                       └──── least cycles ───────┘   └─ culprits ─┘
//! ```

use metrology::Estimate;

use crate::frequency::Confidence;

/// Why code is slow when nothing goes wrong.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum StaticCause {
    /// Too many instructions for the slots or ports of a cycle.
    Slotting,
    /// The first operand is not there yet.
    FirstOperand,
    /// The second operand is not there yet.
    SecondOperand,
    /// A further operand, such as the flags, is not there yet.
    FurtherOperand,
    /// A unit that works on one thing at a time is busy.
    Unit,
}

impl StaticCause {
    /// Every cause, in the order of the summary.
    pub const ALL: [StaticCause; 5] = [
        StaticCause::Slotting,
        StaticCause::FirstOperand,
        StaticCause::SecondOperand,
        StaticCause::FurtherOperand,
        StaticCause::Unit,
    ];

    /// As the summary prints it; the operands bear the letters of the paper.
    pub fn title(self) -> &'static str {
        match self {
            StaticCause::Slotting => "Slotting",
            StaticCause::FirstOperand => "Ra dependency",
            StaticCause::SecondOperand => "Rb dependency",
            StaticCause::FurtherOperand => "Rc dependency",
            StaticCause::Unit => "FU dependency",
        }
    }

    /// The key in JSON.
    pub fn key(self) -> &'static str {
        match self {
            StaticCause::Slotting => "slotting",
            StaticCause::FirstOperand => "ra_dependency",
            StaticCause::SecondOperand => "rb_dependency",
            StaticCause::FurtherOperand => "rc_dependency",
            StaticCause::Unit => "fu_dependency",
        }
    }

    /// The letter of its bubbles in a listing.
    pub fn letter(self) -> char {
        match self {
            StaticCause::Slotting => 's',
            StaticCause::FirstOperand => 'a',
            StaticCause::SecondOperand => 'b',
            StaticCause::FurtherOperand => 'c',
            StaticCause::Unit => 'u',
        }
    }
}

/// What may go wrong.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum DynamicCause {
    /// Code came from beyond the first level.
    CodeCache,
    /// A fetch was translated.
    CodeTlb,
    /// Data came from beyond the first level.
    DataCache,
    /// An access was translated.
    DataTlb,
    /// The store buffer was full.
    StoreBuffer,
    /// A load waited for an older store.
    Forward,
    /// A fence, a locked operation or microcode.
    Synchronisation,
    /// Fetch went the wrong way.
    Mispredict,
    /// The integer multiplier or divider was busy, or its result awaited.
    IntegerUnit,
    /// The floating-point units were busy, or their result awaited.
    FloatUnit,
    /// Fetch or decode could not keep up: taken branches, targets found late.
    Fetch,
    /// A value from before the block was not there yet, or ports were taken.
    Dependence,
}

impl DynamicCause {
    /// Every cause, in the order of the summary.
    pub const ALL: [DynamicCause; 12] = [
        DynamicCause::CodeCache,
        DynamicCause::CodeTlb,
        DynamicCause::DataCache,
        DynamicCause::DataTlb,
        DynamicCause::StoreBuffer,
        DynamicCause::Forward,
        DynamicCause::Synchronisation,
        DynamicCause::Mispredict,
        DynamicCause::IntegerUnit,
        DynamicCause::FloatUnit,
        DynamicCause::Fetch,
        DynamicCause::Dependence,
    ];

    /// As the summary prints it.
    pub fn title(self) -> &'static str {
        match self {
            DynamicCause::CodeCache => "I-cache (not ITB)",
            DynamicCause::CodeTlb => "ITB/I-cache miss",
            DynamicCause::DataCache => "D-cache miss",
            DynamicCause::DataTlb => "DTB miss",
            DynamicCause::StoreBuffer => "Write buffer",
            DynamicCause::Forward => "Store forwarding",
            DynamicCause::Synchronisation => "Synchronization",
            DynamicCause::Mispredict => "Branch mispredict",
            DynamicCause::IntegerUnit => "IMUL busy",
            DynamicCause::FloatUnit => "FDIV busy",
            DynamicCause::Fetch => "Fetch",
            DynamicCause::Dependence => "Other",
        }
    }

    /// The key in JSON.
    pub fn key(self) -> &'static str {
        match self {
            DynamicCause::CodeCache => "code_cache",
            DynamicCause::CodeTlb => "code_tlb",
            DynamicCause::DataCache => "data_cache",
            DynamicCause::DataTlb => "data_tlb",
            DynamicCause::StoreBuffer => "store_buffer",
            DynamicCause::Forward => "forward",
            DynamicCause::Synchronisation => "synchronisation",
            DynamicCause::Mispredict => "mispredict",
            DynamicCause::IntegerUnit => "integer_unit",
            DynamicCause::FloatUnit => "float_unit",
            DynamicCause::Fetch => "fetch",
            DynamicCause::Dependence => "other",
        }
    }

    /// The letter of its bubbles in a listing.
    pub fn letter(self) -> char {
        match self {
            DynamicCause::CodeCache => 'i',
            DynamicCause::CodeTlb => 'I',
            DynamicCause::DataCache => 'd',
            DynamicCause::DataTlb => 'D',
            DynamicCause::StoreBuffer => 'w',
            DynamicCause::Forward => 'r',
            DynamicCause::Synchronisation => 'y',
            DynamicCause::Mispredict => 'p',
            DynamicCause::IntegerUnit => 'm',
            DynamicCause::FloatUnit => 'f',
            DynamicCause::Fetch => 'F',
            DynamicCause::Dependence => 'o',
        }
    }
}

/// A candidate for a dynamic stall.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Culprit {
    /// What may have gone wrong.
    pub cause: DynamicCause,
    /// The least share of the instruction's dynamic stall that is its fault, 0 to 1.
    pub share_min: f64,
    /// The largest.
    pub share_max: f64,
    /// The virtual address of the instruction that is responsible, where there is one: the load
    /// whose value is awaited, the branch that was mispredicted.
    pub responsible: Option<u64>,
}

/// Who may have caused a stall that does not stand out of the noise.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Suspect {
    /// What may have gone wrong.
    pub cause: DynamicCause,
    /// The most that it can have cost each time the instruction ran: more would stand out, or is
    /// ruled out.
    pub cycles_max: f64,
}

/// A stall that the code makes by itself.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct StaticStall {
    /// Cycles each time.
    pub cycles: f64,
    /// Why.
    pub cause: StaticCause,
    /// The virtual address of the instruction that is waited for.
    pub responsible: Option<u64>,
}

/// One instruction.
#[derive(Clone, PartialEq, Debug)]
pub struct InstructionReport {
    /// Its virtual address.
    pub address: u64,
    /// Its block.
    pub block: usize,
    /// Samples of time there.
    pub samples: u64,
    /// How often it ran.
    pub frequency: Estimate,
    /// How far to trust that.
    pub confidence: Confidence,
    /// Cycles at the head of the queue each time it ran; none where it may not have run.
    pub cpi: Option<Estimate>,
    /// The least of them, stalls of the code's own making included; 0 where it leaves together
    /// with the instruction before it.
    pub least_cycles: f64,
    /// What the code itself makes it wait for.
    pub static_stall: Option<StaticStall>,
    /// Cycles of dynamic stall each time it ran; 0 where none stands out of the noise.
    pub dynamic_stall_cycles: f64,
    /// Who may be to blame for them, largest first; empty where nobody is left.
    pub culprits: Vec<Culprit>,
    /// Where no stall stands out: those who cannot be ruled out for one that noise may hide.
    pub suspects: Vec<Suspect>,
}

impl InstructionReport {
    /// Whether it leaves together with the one before it.
    pub fn is_dual_issue(&self) -> bool {
        self.least_cycles == 0.0
    }
}

/// One block.
#[derive(Clone, PartialEq, Debug)]
pub struct BlockReport {
    /// The virtual address of its first instruction.
    pub address: u64,
    /// Instructions in it.
    pub instructions: usize,
    /// Samples of time in it.
    pub samples: u64,
    /// How often it ran.
    pub frequency: Estimate,
    /// How far to trust that.
    pub confidence: Confidence,
    /// Cycles per instruction when nothing goes wrong.
    pub best_cpi: f64,
    /// Cycles per instruction as sampled; none where it may not have run.
    pub actual_cpi: Option<Estimate>,
}

/// One way between blocks.
#[derive(Clone, PartialEq, Debug)]
pub struct EdgeReport {
    /// The block that is left.
    pub from: usize,
    /// The block that is entered.
    pub to: usize,
    /// How often it was taken.
    pub frequency: Estimate,
    /// How far to trust that.
    pub confidence: Confidence,
}

/// A dynamic cause in the summary, as shares of the procedure's cycles.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CauseRange {
    /// The cause.
    pub cause: DynamicCause,
    /// What is its fault for certain.
    pub share_min: f64,
    /// What may be its fault.
    pub share_max: f64,
}

/// How the procedure's cycles were spent; shares are of its samples and add up to 1.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Summary {
    /// Cycles when nothing goes wrong, in samples.
    pub best_case: f64,
    /// Cycles as sampled, in samples.
    pub actual: f64,
    /// Instructions that ran, in samples per cycle of the period: the divisor of both.
    pub executions: f64,
    /// Every dynamic cause, in order.
    pub dynamic: Vec<CauseRange>,
    /// Stalls that nobody is left to blame for.
    pub unexplained_stall: f64,
    /// Time that should have been spent and was not; negative or 0.
    pub unexplained_gain: f64,
    /// All dynamic stalls, unexplained ones included.
    pub subtotal_dynamic: f64,
    /// Every static cause, in order.
    pub statics: Vec<(StaticCause, f64)>,
    /// Their sum.
    pub subtotal_static: f64,
    /// Static and dynamic together.
    pub total_stall: f64,
    /// Cycles in which instructions issued.
    pub execution: f64,
    /// Differences that chance explains, summed with their signs.
    pub sampling_error: f64,
    /// The sum of stalls, execution and sampling error.
    pub total_tallied: f64,
    /// Samples of time in the procedure.
    pub samples: u64,
    /// Their share of all samples of time.
    pub share_of_all: f64,
    /// Cycles that one of them stands for.
    pub cycles_per_sample: f64,
}

impl Summary {
    /// Cycles per instruction when nothing goes wrong; none where nothing ran.
    pub fn best_cpi(&self) -> Option<f64> {
        (self.executions > 0.0).then(|| self.best_case / self.executions)
    }

    /// Cycles per instruction as sampled; none where nothing ran.
    pub fn actual_cpi(&self) -> Option<f64> {
        (self.executions > 0.0).then(|| self.actual / self.executions)
    }
}

/// Everything about one procedure.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ProcedureReport {
    /// By address.
    pub instructions: Vec<InstructionReport>,
    /// As in the flow graph.
    pub blocks: Vec<BlockReport>,
    /// As in the flow graph.
    pub edges: Vec<EdgeReport>,
    /// The whole.
    pub summary: Summary,
    /// What the reader should know, a sentence each.
    pub notes: Vec<String>,
}

impl ProcedureReport {
    /// The instruction at a virtual address.
    pub fn at(&self, address: u64) -> Option<&InstructionReport> {
        let place = self.instructions.binary_search_by_key(&address, |it| it.address).ok()?;
        self.instructions.get(place)
    }
}
