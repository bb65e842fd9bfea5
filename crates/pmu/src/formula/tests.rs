use std::collections::BTreeMap;

use metrology::Estimate;

use super::*;

#[derive(Default)]
struct Given {
    values: BTreeMap<&'static str, Estimate>,
    together: f64,
}

impl Inputs for Given {
    fn value(&self, name: &str) -> Option<Estimate> {
        self.values.get(name).copied()
    }
    fn covariance(&self, _: &str, _: &str) -> f64 {
        self.together
    }
}

fn given(values: &[(&'static str, f64, f64)]) -> Given {
    let values = values.iter().map(|&(name, value, u)| (name, Estimate::known(value, u)));
    Given { values: values.collect(), together: 0.0 }
}

fn value(text: &str) -> f64 {
    let inputs = given(&[("a", 6.0, 0.0), ("b-c.d", 3.0, 0.0)]);
    Formula::parse(text).unwrap().evaluate(&inputs).unwrap().value
}

#[test]
fn operators_bind_and_lean_as_in_arithmetic() {
    let cases = [
        ("1 + 2 * 3", 7.0),
        ("8 / 4 / 2", 1.0),
        ("8 - 4 - 2", 2.0),
        ("-(a - 8)", 2.0),
        ("a / b-c.d", 2.0),
        ("a -b-c.d", 3.0),
        ("max(0, b-c.d - a) + min(a, 2)", 2.0),
        ("1e-1 * 20.5", 2.05),
        ("2 * (a + b-c.d)", 18.0),
    ];
    for (text, expected) in cases {
        assert!((value(text) - expected).abs() < 1e-12, "{text}");
    }
}

#[test]
fn a_fault_is_named_with_its_column() {
    for (text, message) in [
        ("", "no formula at column 1: it ends too early"),
        ("a +", "no formula at column 4: it ends too early"),
        ("a b", "no formula at column 3: an operator or the end is missing"),
        ("(a", "no formula at column 3: a closing parenthesis is missing"),
        ("max(a)", "no formula at column 6: min and max take two values"),
        ("a- b", "no formula at column 1: a blank is missing before the minus sign"),
        ("1.2.3", "no formula at column 1: this is no number"),
    ] {
        assert_eq!(Formula::parse(text).unwrap_err().to_string(), message, "{text}");
    }
    assert!(Formula::parse(&"(".repeat(1000)).is_err());
    assert!(Formula::parse(&format!("1{}", "+1".repeat(1000))).is_err());
}

#[test]
fn a_ratio_of_independent_counts_adds_relative_uncertainties_in_squares() {
    let formula = Formula::parse("a / b").unwrap();
    let ratio = formula.evaluate(&given(&[("a", 100.0, 3.0), ("b", 50.0, 2.0)])).unwrap();
    assert!((ratio.standard_uncertainty / ratio.value - 0.05).abs() < 1e-12);
}

#[test]
fn counts_that_go_up_and_down_together_leave_their_ratio_sure() {
    // cov(a, b) = u_a u_b: fully correlated, equal relative uncertainty, so the ratio is exact.
    let mut inputs = given(&[("a", 100.0, 10.0), ("b", 50.0, 5.0)]);
    inputs.together = 50.0;
    let formula = Formula::parse("a / b").unwrap();
    assert!(formula.evaluate(&inputs).unwrap().standard_uncertainty < 1e-7);
    // And a difference of quantities that vary against each other is less sure: 10 + 5.
    inputs.together = -50.0;
    let apart = Formula::parse("a - b").unwrap().evaluate(&inputs).unwrap();
    assert!((apart.standard_uncertainty - 15.0).abs() < 1e-9);
}

#[test]
fn slopes_are_those_of_a_numerical_derivative() {
    let text = "(a * b + 3 / a) / (b - 2 * a) - max(a, b) * min(a, 4)";
    let formula = Formula::parse(text).unwrap();
    let at = |a: f64, b: f64| {
        let inputs = given(&[("a", a, 0.0), ("b", b, 0.0)]);
        formula.evaluate(&inputs).unwrap().value
    };
    let h = 1e-5;
    for (a, b) in [(1.5, 7.0), (2.0, 11.0), (0.3, 0.9)] {
        let slope = (at(a + h, b) - at(a - h, b)) / (2.0 * h);
        // With u_a = 1 and u_b = 0 the uncertainty is the slope along a.
        let inputs = given(&[("a", a, 1.0), ("b", b, 0.0)]);
        let u = formula.evaluate(&inputs).unwrap().standard_uncertainty;
        assert!((u - slope.abs()).abs() < 1e-6 * u.max(1.0), "{u} {slope}");
    }
}

#[test]
fn what_is_missing_or_undefined_is_said_and_never_zero() {
    let formula = Formula::parse("a / b").unwrap();
    let missing = formula.evaluate(&given(&[("a", 1.0, 0.0)])).unwrap_err();
    assert_eq!(missing.to_string(), "b was not counted");
    let inputs = given(&[("a", 1.0, 0.0), ("b", 0.0, 0.0)]);
    assert_eq!(formula.evaluate(&inputs), Err(NotComputed::Undefined));
}

#[test]
fn units_follow_the_arithmetic_and_a_mixture_is_refused() {
    let of = |name: &str| {
        Dimension::named(match name {
            "c" => "cycles",
            "i" => "instructions",
            "m" => "events",
            _ => return None,
        })
        .ok()
    };
    let unit = |text: &str| Formula::parse(text).unwrap().dimension(&of);
    assert_eq!(unit("c / i").unwrap(), Dimension::named("cycles/instruction").unwrap());
    assert_eq!(unit("1000 * m / i").unwrap(), Dimension::named("events/kinstruction").unwrap());
    assert_eq!(unit("max(0, c - 5)").unwrap(), Dimension::named("cycles").unwrap());
    assert_eq!(unit("m / m").unwrap(), Dimension::NONE);
    assert_eq!(unit("c + i").unwrap_err().to_string(), "cycles and instructions do not add up");
    assert_eq!(unit("x").unwrap_err().to_string(), "there is no event or constant 'x'");
    assert!(Dimension::named("furlongs").is_err());
    assert_eq!(Dimension::named("B/s").unwrap().to_string(), "B/s");
}

#[test]
fn bent_formulas_never_panic_and_what_parses_keeps_its_text() {
    let rounds = std::env::var("WHITHER_FUZZ_ROUNDS").ok().and_then(|n| n.parse().ok());
    let seed = b"1000 * (l1d-load.misses + max(0, a - b)) / instructions";
    let mut state = 7_u64;
    let mut next = |bound: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) as usize) % bound.max(1)
    };
    let alphabet = b"()+-*/,. abcmin0123456789e\xc3\xa4";
    for _ in 0..rounds.unwrap_or(3000_u64) {
        let mut bytes = seed.to_vec();
        for _ in 0..1 + next(5) {
            let at = next(bytes.len());
            match next(3) {
                0 => bytes[at] = alphabet[next(alphabet.len())],
                1 => bytes.insert(at, alphabet[next(alphabet.len())]),
                _ => bytes.truncate(at.max(1)),
            }
        }
        let text = String::from_utf8_lossy(&bytes);
        if let Ok(formula) = Formula::parse(&text) {
            assert_eq!(formula.text(), text);
            let _ = formula.evaluate(&given(&[("a", 1.0, 0.1), ("b", 0.0, 0.1)]));
        }
    }
}
