//! Arguments in, plan out.

mod arguments;
mod plan;

pub(crate) use arguments::{Arguments, By, CfgFormat, ConfigArgument, ExportFormat, IcostBy};
pub(crate) use plan::{
    AnnotateJob, Ask, CalcJob, CalibrateJob, CfgJob, CountJob, DaemonJob, DiffJob, EpochChoice,
    ExportJob, Form, Here, IcostJob, ImportJob, InputKind, Job, ListJob, ListWhat, MeasureJob,
    ModelJob, ModelledRecord, OnModel, Plan, ProfJob, RecordJob, RunJob, Selection, ShotgunJob,
    SsbJob, StartJob, StatJob, StatsJob, Subject, SummaryJob, Varies, WarmUp, Watched, What, Who,
    Whom, check_machine, event_table, parse, software_set,
};
