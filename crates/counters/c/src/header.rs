//! The header, from the declarations.
//!
//! The interface is a dozen calls over four types: writing them out takes less than the parser of
//! Rust that a general generator brings along.

use std::fmt::Write;

use crate::calls::DECLARATIONS;
use crate::code::CODES;
use crate::value::{FIELDS, STATES};

const OPENING: &str = "\
/* Event sets: a program counts its own threads. docs/API.md tells how.
 *
 * Made by `WHITHER_BLESS=1 cargo test -p counters-c`; do not edit.
 * A set belongs to the thread that made it. Every call returns WHITHER_OK or a code below 0. */
#ifndef WHITHER_COUNTERS_H
#define WHITHER_COUNTERS_H

#ifdef __cplusplus
extern \"C\" {
#endif
";

const CLOSING: &str = "
#ifdef __cplusplus
}
#endif

#endif
";

/// The text of `whither_counters.h`.
pub fn header() -> String {
    let mut text = OPENING.to_owned();
    text.push('\n');
    for code in &CODES {
        let _ =
            writeln!(text, "#define {:<20} ({})  /* {} */", code.name, code.number, code.meaning);
    }
    text.push_str("\n/* whither_value.state */\n");
    for (name, number, what) in STATES {
        let _ = writeln!(text, "#define {name:<20} {number}  /* {what} */");
    }
    text.push_str("\n/* What a set says of one event. */\ntypedef struct whither_value {\n");
    for (kind, name, what) in FIELDS {
        let _ = writeln!(text, "    {:<24} /* {what} */", format!("{kind} {name};"));
    }
    text.push_str("} whither_value;\n");
    for declaration in DECLARATIONS {
        let what: Vec<&str> = declaration.what.iter().map(|line| line.trim()).collect();
        let arguments: Vec<String> =
            declaration.arguments.iter().map(|(name, kind)| in_c(kind, name)).collect();
        let returns = in_c(declaration.returns, declaration.name);
        let _ =
            write!(text, "\n/* {} */\n{returns}({});\n", what.join("\n * "), arguments.join(", "));
    }
    text.push_str(CLOSING);
    text
}

/// A declarator: `const char *name`.
fn in_c(kind: &str, name: &str) -> String {
    let known = match kind {
        "c_int" => "int ",
        "c_longlong" => "long long ",
        "*mut c_int" => "int *",
        "*const c_char" => "const char *",
        "*mut WhitherValue" => "whither_value *",
        other => return format!("#error {other} is not known to the header's maker"),
    };
    format!("{known}{name}")
}
