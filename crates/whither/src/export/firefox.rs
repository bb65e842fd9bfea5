//! The processed form of the Firefox Profiler: one JSON object of tables, column by column.
//!
//! Samples have no moments of their own once they are counted: they stand one after the other, each
//! with its weight.

use std::collections::HashMap;

use serde_json::{Value, json};
use vocab::ImageId;

use super::Exported;
use super::stacks::Stacks;
use super::symbols::{Frame, symbols};
use crate::sampled::Sampled;

/// The versions of the form that these tables are of.
const VERSION: u32 = 27;
const PROCESSED_VERSION: u32 = 48;

/// Tables that grow as stacks are met.
#[derive(Default)]
struct Tables {
    strings: HashMap<String, usize>,
    string_list: Vec<String>,
    resources: HashMap<ImageId, usize>,
    resource_names: Vec<usize>,
    functions: HashMap<(String, Option<ImageId>), usize>,
    /// Name, resource, file.
    function_list: Vec<(usize, i64, Option<usize>)>,
    frames: HashMap<(usize, u64, usize), usize>,
    /// Function, address, depth of inlining, line.
    frame_list: Vec<(usize, u64, usize, Option<u32>)>,
    stacks: HashMap<(Option<usize>, usize), usize>,
    stack_list: Vec<(Option<usize>, usize)>,
}

pub(super) fn firefox(sampled: &Sampled, stacks: &Stacks) -> Exported {
    let symbols = symbols(sampled, stacks);
    let mut tables = Tables::default();
    let (mut of_sample, mut weights) = (Vec::new(), Vec::new());
    for (stack, count) in &stacks.list {
        let mut prefix = None;
        for place in stack {
            let image = place.map(|place| place.image);
            match place.and_then(|place| symbols.get(&place)) {
                Some(symbol) => {
                    for (depth, frame) in symbol.frames.iter().rev().enumerate() {
                        prefix = Some(tables.stack(
                            sampled,
                            prefix,
                            frame,
                            (image, symbol.address, depth),
                        ));
                    }
                }
                None => {
                    let unknown = Frame {
                        name: "[unknown]".into(),
                        raw_name: String::new(),
                        file: String::new(),
                        line: 0,
                    };
                    prefix = Some(tables.stack(sampled, prefix, &unknown, (None, 0, 0)));
                }
            }
        }
        of_sample.push(prefix);
        weights.push(count.0);
    }
    let times: Vec<usize> = (0..of_sample.len()).collect();
    let samples = json!({
        "stack": of_sample, "time": times, "weight": weights, "weightType": "samples",
        "length": times.len(),
    });
    let profile = tables.profile(sampled, &samples);
    let mut exported = Exported::text(format!("{profile}\n"), stacks.total);
    exported.notes.extend(super::folded::no_chains(sampled));
    exported.notes.push("moments were not kept: the time axis has no meaning".into());
    exported
}

impl Tables {
    fn string(&mut self, text: &str) -> usize {
        if let Some(&known) = self.strings.get(text) {
            return known;
        }
        self.string_list.push(text.to_owned());
        self.strings.insert(text.to_owned(), self.string_list.len() - 1);
        self.string_list.len() - 1
    }

    fn resource(&mut self, sampled: &Sampled, image: ImageId) -> usize {
        if let Some(&known) = self.resources.get(&image) {
            return known;
        }
        let name = self.string(sampled.image_name(image));
        self.resource_names.push(name);
        self.resources.insert(image, self.resource_names.len() - 1);
        self.resource_names.len() - 1
    }

    /// A frame below a prefix; `at` is its image, its address and how deep it was inlined.
    fn stack(
        &mut self,
        sampled: &Sampled,
        prefix: Option<usize>,
        frame: &Frame,
        (image, address, depth): (Option<ImageId>, u64, usize),
    ) -> usize {
        let name = self.string(&frame.name);
        let resource = image.map_or(-1, |image| self.resource(sampled, image) as i64);
        let file = (!frame.file.is_empty()).then(|| self.string(&frame.file));
        let function = *self.functions.entry((frame.name.clone(), image)).or_insert_with(|| {
            self.function_list.push((name, resource, file));
            self.function_list.len() - 1
        });
        let line = (frame.line > 0).then_some(frame.line);
        let frame = *self.frames.entry((function, address, depth)).or_insert_with(|| {
            self.frame_list.push((function, address, depth, line));
            self.frame_list.len() - 1
        });
        *self.stacks.entry((prefix, frame)).or_insert_with(|| {
            self.stack_list.push((prefix, frame));
            self.stack_list.len() - 1
        })
    }

    fn profile(&self, sampled: &Sampled, samples: &Value) -> Value {
        let began = sampled.selected.epochs.iter().map(store::EpochEntry::began_unix_ns).min();
        let began_ms = began.unwrap_or(0) as f64 / 1e6;
        json!({
            "meta": {
                "version": VERSION,
                "preprocessedProfileVersion": PROCESSED_VERSION,
                "interval": 1,
                "startTime": began_ms,
                "processType": 0,
                "product": format!("whither: {}", sampled.event_name()),
                "stackwalk": 1,
                "debug": false,
                "symbolicated": true,
                "sampleUnits": { "time": "ms", "eventDelay": "ms", "threadCPUDelta": "ns" },
                "categories": [{ "name": "Other", "color": "grey", "subcategories": ["Other"] }],
                "markerSchema": [],
            },
            "libs": [],
            "pages": [],
            "threads": [self.thread(sampled, samples)],
        })
    }

    fn thread(&self, sampled: &Sampled, samples: &Value) -> Value {
        let (functions, frames, stacks) =
            (self.function_list.len(), self.frame_list.len(), self.stack_list.len());
        let resources = self.resource_names.len();
        let column = |of: &dyn Fn(usize) -> Value, length: usize| -> Vec<Value> {
            (0..length).map(of).collect()
        };
        let same = |value: Value, length: usize| vec![value; length];
        let function = |k: usize| self.function_list.get(k).copied().unwrap_or_default();
        let frame = |k: usize| self.frame_list.get(k).copied().unwrap_or_default();
        let stack = |k: usize| self.stack_list.get(k).copied().unwrap_or_default();
        json!({
            "processType": "default", "processStartupTime": 0, "processShutdownTime": null,
            "registerTime": 0, "unregisterTime": null, "pausedRanges": [],
            "name": sampled.event_name(), "isMainThread": true, "pid": "0", "tid": 0,
            "samples": samples,
            "markers": {
                "data": [], "name": [], "startTime": [], "endTime": [], "phase": [],
                "category": [], "length": 0,
            },
            "stackTable": {
                "frame": column(&|k| json!(stack(k).1), stacks),
                "prefix": column(&|k| json!(stack(k).0), stacks),
                "category": same(json!(0), stacks),
                "subcategory": same(json!(0), stacks),
                "length": stacks,
            },
            "frameTable": {
                "address": column(&|k| json!(frame(k).1), frames),
                "inlineDepth": column(&|k| json!(frame(k).2), frames),
                "category": same(json!(0), frames),
                "subcategory": same(json!(0), frames),
                "func": column(&|k| json!(frame(k).0), frames),
                "nativeSymbol": same(Value::Null, frames),
                "innerWindowID": same(json!(0), frames),
                "implementation": same(Value::Null, frames),
                "line": column(&|k| json!(frame(k).3), frames),
                "column": same(Value::Null, frames),
                "length": frames,
            },
            "funcTable": {
                "name": column(&|k| json!(function(k).0), functions),
                "isJS": same(json!(false), functions),
                "relevantForJS": same(json!(false), functions),
                "resource": column(&|k| json!(function(k).1), functions),
                "fileName": column(&|k| json!(function(k).2), functions),
                "lineNumber": same(Value::Null, functions),
                "columnNumber": same(Value::Null, functions),
                "length": functions,
            },
            "resourceTable": {
                "lib": same(Value::Null, resources),
                "name": self.resource_names,
                "host": same(Value::Null, resources),
                "type": same(json!(1), resources),
                "length": resources,
            },
            "nativeSymbols": {
                "libIndex": [], "address": [], "name": [], "functionSize": [], "length": 0,
            },
            "stringArray": self.string_list,
        })
    }
}
