//! Arguments in, plan out.

mod arguments;
mod plan;

pub(crate) use arguments::{Arguments, By, CfgFormat, ConfigArgument, ExportFormat};
pub(crate) use plan::{
    AnnotateJob, Ask, CalcJob, CalibrateJob, CfgJob, CountJob, DaemonJob, DiffJob, EpochChoice,
    ExportJob, Form, Here, ImportJob, Job, ListJob, ListWhat, MeasureJob, ModelJob, ModelledRecord,
    OnModel, Plan, ProfJob, RecordJob, RunJob, Selection, SsbJob, StartJob, StatJob, StatsJob,
    SummaryJob, Varies, WarmUp, Watched, What, Who, Whom, event_table, parse, software_set,
};
