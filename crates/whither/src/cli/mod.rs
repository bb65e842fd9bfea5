//! Arguments in, plan out.

mod arguments;
mod plan;

pub(crate) use arguments::{Arguments, By, CfgFormat, ConfigArgument};
pub(crate) use plan::{
    AnnotateJob, Ask, CalcJob, CalibrateJob, CfgJob, DaemonJob, DiffJob, EpochChoice, Form, Here,
    ImportJob, Job, ListJob, ListWhat, MeasureJob, ModelJob, ModelledRecord, OnModel, Plan,
    ProfJob, RecordJob, RunJob, Selection, SsbJob, StartJob, StatJob, StatsJob, SummaryJob, Varies,
    WarmUp, Watched, What, Who, Whom, event_table, parse, software_set,
};
