//! Arguments in, plan out.

mod arguments;
mod plan;

pub(crate) use arguments::{Arguments, By, ConfigArgument};
pub(crate) use plan::{
    AnnotateJob, Ask, CalibrateJob, DaemonJob, DiffJob, EpochChoice, Form, Here, ImportJob, Job,
    ListJob, ListWhat, MeasureJob, ModelJob, ModelledRecord, OnModel, Plan, ProfJob, RecordJob,
    RunJob, Selection, SsbJob, StartJob, StatJob, StatsJob, Varies, WarmUp, Watched, What, Who,
    Whom, event_table, parse, software_set,
};
