//! Values of constants, read from their sources.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use hyperfleet_testkit::files_below;
use syn::{BinOp, Expr, ImplItem, Item, Lit};

/// The constants of one file, by their names.
#[derive(Default)]
struct Constants(BTreeMap<String, Expr>);

/// The value of a constant: times in milliseconds, everything else as it is.
///
/// # Panics
/// The file does not define it, or by an expression that this cannot compute.
pub(crate) fn value(file: &str, name: &str) -> u64 {
    let constants = Constants::of(Path::new(file));
    let Some(expression) = constants.0.get(name) else {
        panic!("{file} has no constant {name}");
    };
    let value = computed(expression, file);
    if name.contains("SECONDS") {
        value * 1_000
    } else if name.contains("MINUTES") {
        value * 60_000
    } else {
        value
    }
}

fn computed(expression: &Expr, file: &str) -> u64 {
    match expression {
        Expr::Lit(literal) => match &literal.lit {
            Lit::Int(number) => number.base10_parse().unwrap(),
            _ => panic!("{file}: a constant is no number"),
        },
        Expr::Paren(inner) => computed(&inner.expr, file),
        Expr::Cast(inner) => computed(&inner.expr, file),
        Expr::Path(path) => {
            let name = path.path.segments.last().unwrap().ident.to_string();
            elsewhere(file, &name)
        }
        Expr::Binary(binary) => {
            let (left, right) = (computed(&binary.left, file), computed(&binary.right, file));
            match binary.op {
                BinOp::Add(_) => left + right,
                BinOp::Sub(_) => left - right,
                BinOp::Mul(_) => left * right,
                BinOp::Div(_) => left / right,
                BinOp::Shl(_) => left << right,
                _ => panic!("{file}: an operator that this test does not know"),
            }
        }
        Expr::Call(call) => time(&call.func, computed(&call.args[0], file)),
        _ => panic!("{file}: an expression that this test does not know"),
    }
}

/// Milliseconds of `Duration::from_secs(number)` and its like.
fn time(function: &Expr, number: u64) -> u64 {
    let Expr::Path(function) = function else {
        panic!("a call of no function");
    };
    let name = function.path.segments.last().unwrap().ident.to_string();
    let unit = match name.trim_start_matches("from_") {
        "millis" | "milliseconds" => 1,
        "secs" | "seconds" => 1_000,
        "mins" | "minutes" => 60_000,
        "hours" => 3_600_000,
        "days" => 86_400_000,
        _ => panic!("{name} makes no time that this test knows"),
    };
    number * unit
}

/// A constant that another one uses: of the same file, or else of the only file in its folder that has one.
fn elsewhere(file: &str, name: &str) -> u64 {
    let own = Path::new(file);
    let mut files = vec![own.to_path_buf()];
    files.extend(files_below(own.parent().unwrap()));
    files.retain(|path| path.extension().is_some_and(|e| e == "rs"));
    let found = files.iter().find_map(|path| {
        let expression = Constants::of(path).0.remove(name)?;
        Some(computed(&expression, path.to_str().unwrap()))
    });
    found.unwrap_or_else(|| panic!("{file}: where is {name}?"))
}

impl Constants {
    fn of(file: &Path) -> Self {
        let text = fs::read_to_string(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        let mut constants = Self::default();
        constants.add(&syn::parse_file(&text).unwrap().items);
        constants
    }

    /// The first of several with one name counts: those of tests come last.
    fn add(&mut self, items: &[Item]) {
        for item in items {
            match item {
                Item::Const(constant) => {
                    let entry = self.0.entry(constant.ident.to_string());
                    entry.or_insert_with(|| (*constant.expr).clone());
                }
                Item::Impl(block) => {
                    for item in &block.items {
                        if let ImplItem::Const(constant) = item {
                            let entry = self.0.entry(constant.ident.to_string());
                            entry.or_insert_with(|| constant.expr.clone());
                        }
                    }
                }
                Item::Mod(module) => {
                    let inner = module.content.as_ref();
                    self.add(inner.map_or(&[], |(_, items)| items));
                }
                _ => {}
            }
        }
    }
}
