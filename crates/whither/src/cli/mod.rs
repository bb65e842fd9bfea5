//! Arguments in, plan out.

mod arguments;
mod plan;

pub(crate) use arguments::{Arguments, By, ConfigArgument, IcostBy};
pub(crate) use plan::{
    Ask, CalibrateJob, DaemonJob, EpochChoice, Form, Here, IcostJob, ImportJob, Job, ListJob,
    ListWhat, MeasureJob, ModelJob, ModelledRecord, OnModel, Plan, ProfJob, RecordJob, RunJob,
    SsbJob, StartJob, StatJob, Varies, WarmUp, Watched, What, Who, Whom, check_machine,
    event_table, parse, software_set,
};
