//! The directory that launcher and engine share is taken away while the program runs. Alone in this
//! file: whoever ran beside it in one process would have a directory of the same name.

#![allow(clippy::unwrap_used, reason = "a failure here is the test failing")]

#[allow(dead_code, reason = "it plants no program")]
mod planted;

use std::process::id;

use planted::engines;
use tracer::hash::StreamHash;
use tracer::launch::Launch;
use tracer::record::ProcessRecord;
use tracer::results::ProcessKey;
use tracer::stream::{InstructionStream, Live, StreamError};
use tracer::trace::Audience;

struct Deaf;

impl Audience for Deaf {
    type Core = StreamHash;

    fn thread(&mut self, _: ProcessKey, _: u32) -> StreamHash {
        StreamHash::default()
    }

    fn record(&mut self, _: ProcessKey, _: &ProcessRecord) {}

    fn ended(&mut self, _: ProcessKey, _: u32, _: StreamHash) {}
}

#[test]
fn a_listener_whose_directory_is_removed_says_so_and_does_not_wait_for_ever() {
    let mut parents = ["/dev/shm", "/tmp", "/var/tmp"].map(str::to_owned).to_vec();
    parents.extend(std::env::var("TMPDIR"));
    let ours =
        (0..4).flat_map(|n| parents.iter().map(move |p| format!("{p}/whither-{}-{n}", id())));
    let arguments = ["-rf".to_owned()].into_iter().chain(ours).map(Into::into).collect();
    let launch = Launch { arguments, ..Launch::new("rm") };
    let outcome = Live { launch, engines: *engines() }.play(&mut Deaf);
    let why = outcome.map(|_| ()).unwrap_err();
    assert!(matches!(why, StreamError::Gone), "{why}");
}
