//! What the report cannot see, said in the report.

use vocab::{Count, ImageKind, Mode};

use super::report::Report;

/// Fewer samples than this say little about anything but the largest share.
const FEW: Count = Count(100);

pub(super) fn notes(report: &Report<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    notes.extend(event_choice(report));
    notes.extend(few_samples(report));
    notes.extend(script(report));
    notes.extend(mode(report));
    notes.extend(blind_spots(report));
    notes.extend(losses(report));
    notes.extend(unread_images(report));
    notes.extend(stripped_images(report));
    match report.second {
        Some(second) => notes.extend(second.notes()),
        None => notes.push(
            "Letters before an instruction are causes that could not be ruled out: samples of one \
             clock do not tell them apart. --model adds a modelled run that does."
                .into(),
        ),
    }
    notes
}

fn event_choice(report: &Report<'_>) -> Option<String> {
    let because = &report.sampling.because;
    (!because.is_empty())
        .then(|| format!("Time is measured with a timer, not in cycles: {because}."))
}

fn few_samples(report: &Report<'_>) -> Option<String> {
    let whole = report.whole();
    (whole < FEW).then(|| {
        let counted = match whole {
            Count(0) => "No sample was".to_owned(),
            Count(1) => "Only one sample was".to_owned(),
            whole => format!("Only {whole} samples were"),
        };
        format!("{counted} taken; run the program longer, or sample more often with -F.")
    })
}

fn script(report: &Report<'_>) -> Option<String> {
    let interpreter = report.program.interpreter.as_ref()?;
    Some(format!(
        "{} is a script: what is seen is its interpreter, {interpreter}, and what that starts.",
        report.program.path.display()
    ))
}

fn mode(report: &Report<'_>) -> Option<String> {
    let asked = report.sampling.request.event.mode;
    (asked == Mode::Both && report.native.mode == Mode::User).then(|| {
        let system = report.native.ended.usage.system;
        format!(
            "The kernel's part ({}) is not sampled: not permitted. `whither doctor` says how.",
            show::duration(system.as_secs_f64())
        )
    })
}

/// Where a timer interrupt cannot fall.
fn blind_spots(report: &Report<'_>) -> Option<String> {
    let kernel_seen = report
        .times
        .iter()
        .filter_map(|time| report.native.profile.image(time.image))
        .any(|image| matches!(image.kind, ImageKind::Kernel | ImageKind::Module));
    (report.sampling.is_software() && kernel_seen).then(|| {
        "The timer is blind where the kernel has interrupts off: such time shows on the \
         instruction that turns them on again (do_syscall_64, finish_task_switch, \
         _raw_spin_unlock_irqrestore and the like)."
            .into()
    })
}

fn losses(report: &Report<'_>) -> Option<String> {
    let lost = report.native.profile.tally.lost;
    (lost > Count::ZERO).then(|| {
        format!("{lost} records were lost; shares are of the rest. Sample less often with -F.")
    })
}

fn unread_images(report: &Report<'_>) -> Vec<String> {
    let sentence = |(id, why): &(vocab::ImageId, String)| {
        format!(
            "{} could not be read, so its samples have no names: {why}.",
            report.image_name(*id)
        )
    };
    report.images.unread.iter().map(sentence).collect()
}

fn stripped_images(report: &Report<'_>) -> Option<String> {
    let stripped = &report.images.stripped;
    let names: Vec<&str> = stripped.iter().map(|&id| report.image_name(id)).collect();
    (!names.is_empty()).then(|| {
        format!(
            "Stripped of symbols, in whole or in part: {}. Procedures without a name are shown \
             by their offset, from the unwind table; a -dbg or -dbgsym package would name them.",
            names.join(", ")
        )
    })
}
