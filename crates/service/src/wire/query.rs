//! Query parameters of reads. Unknown ones are ignored, and known ones where they have no effect. A parameter with one value may be repeated only with the same
//! value: which of two values a client means is unknown, and the wrong one may show it more than it asked for.

use chrono::{DateTime, Utc};

use super::fields::{Fields, UnknownFields};
use hyperfleet_domain::audit::{AuditFilter, TrailPosition};
use hyperfleet_domain::change::ChangePosition;
use hyperfleet_domain::history::PastMoment;
use hyperfleet_domain::moment;
use hyperfleet_domain::page::{Direction, InvalidOrder, Order, PageRequest};
use hyperfleet_domain::tsl;
use hyperfleet_domain::watch::WatchStart;
use hyperfleet_domain::{
    Constraint, ListFilter, ListFilterKind, ResourceId, Violation, Violations, excerpt,
};

#[derive(Debug, Clone, PartialEq)]
pub enum ParamsError {
    Invalid(Violations),
    /// The order that a parameter gives cannot be used.
    Order(&'static str, InvalidOrder),
    Search(tsl::SearchError),
    /// Members that do not exist are selected.
    Fields(UnknownFields),
}

/// The decoded parameters of a request, in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Params(Vec<(String, String)>);

/// The parameters that have one value. Others are lists (`order`, `orderBy`, `fields`), or have a rule of their own
/// ([`Params::dry_run`]).
#[rustfmt::skip]
const SINGLE: [&str; 21] = [
    "action", "actor", "after", "at", "continue", "generation", "holder", "includeDeleted", "initial", "kind", "page",
    "pageSize", "position", "ref_target_id", "ref_type", "resource_id", "search", "since", "size", "until", "watch",
];

impl Params {
    pub fn new(pairs: Vec<(String, String)>) -> Self {
        Self(pairs)
    }

    /// Checks that no parameter with one value has several.
    ///
    /// # Errors
    ///
    /// Names every parameter that has.
    pub fn checked(self) -> Result<Self, ParamsError> {
        let mut violations = Violations::default();
        // With `orderBy` it is a direction, not a list.
        let order = self.get("orderBy").map(|_| "order");
        for name in SINGLE.into_iter().chain(order) {
            let mut values = self.values(name).map(str::trim).filter(|v| !v.is_empty());
            let first = values.next();
            if let Some(other) = values.find(|value| Some(*value) != first) {
                let message = format!("{name} must not be repeated with another value");
                let violation = Violation::new(name, Constraint::Unique, message);
                violations.push(violation.with_value(excerpt(other)));
            }
        }
        valid(violations, self)
    }

    /// The value of a parameter, trimmed. Blank values count as absent.
    pub fn get(&self, name: &str) -> Option<&str> {
        let mut values = self.values(name).map(str::trim);
        values.find(|value| !value.is_empty())
    }

    pub(super) fn values(&self, name: &str) -> impl Iterator<Item = &str> {
        let named = self.0.iter().filter(move |(key, _)| key == name);
        named.map(|(_, value)| value.as_str())
    }

    /// All entries of a comma-separated parameter that may be repeated.
    fn entries(&self, name: &str) -> impl Iterator<Item = &str> {
        let entries = self.values(name).flat_map(|value| value.split(','));
        entries.map(str::trim).filter(|entry| !entry.is_empty())
    }

    /// Reads `page` and `size`, or the older `pageSize`, which wins and is cut to the largest page
    /// (`docs/decisions/0002-page-parameters.md`).
    ///
    /// # Errors
    ///
    /// A value that is not an integer takes precedence over one out of range.
    pub fn page(&self) -> Result<PageRequest, ParamsError> {
        self.page_among(Violations::default())
    }

    /// The same for lists that take `ref_type` and `ref_target_id`: both or neither.
    ///
    /// # Errors
    ///
    /// Those of [`Params::page`], then a missing one of the two.
    pub fn page_with_reference(&self) -> Result<PageRequest, ParamsError> {
        let missing = match (self.get("ref_type"), self.get("ref_target_id")) {
            (None, Some(_)) => Some("reftype"),
            (Some(_), None) => Some("reftargetid"),
            _ => None,
        };
        let missing = missing.map(|field| {
            let message = "ref_type and ref_target_id must be provided together";
            Violation::new(field, Constraint::Required, message).with_value("")
        });
        let mut violations = Violations::default();
        violations.extend(missing);
        self.page_among(violations)
    }

    /// Adds further violations, which come after violations by values that are not integers.
    fn page_among(&self, others: Violations) -> Result<PageRequest, ParamsError> {
        let size_name = if self.get("pageSize").is_some() {
            "pageSize"
        } else {
            "size"
        };
        let mut violations = Violations::default();
        let number = self.integer("page", &mut violations);
        let size = self.integer(size_name, &mut violations);
        if !violations.is_empty() {
            return Err(ParamsError::Invalid(violations));
        }
        let mut violations = others;
        let mut size = size.unwrap_or(i64::from(PageRequest::SIZE_DEFAULT));
        if size_name == "pageSize" {
            size = size.min(PageRequest::SIZE_MAX.into());
        }
        let size = in_range(size_name, size, PageRequest::SIZE_MAX, &mut violations);
        let number = in_range(
            "page",
            number.unwrap_or(1),
            PageRequest::NUMBER_MAX,
            &mut violations,
        );
        match (number, size) {
            (Some(number), Some(size)) if violations.is_empty() => Ok(PageRequest { number, size }),
            _ => Err(ParamsError::Invalid(violations)),
        }
    }

    fn integer(&self, name: &str, violations: &mut Violations) -> Option<i64> {
        let integer = |text: &str| text.parse().ok();
        self.parsed(name, "must be a valid integer", integer, violations)
    }

    /// Reads `order=name desc,…`, or the older pair `orderBy=name&order=desc`.
    pub fn order(&self) -> Result<Order, ParamsError> {
        let direction = self.get("order").and_then(|text| text.parse().ok());
        let is_older = self.entries("orderBy").next().is_some();
        let order = match (is_older, direction) {
            (true, Some(default)) => Order::parse(self.entries("orderBy"), default),
            (true, None) => match self.get("order") {
                None => Order::parse(self.entries("orderBy"), Direction::Ascending),
                Some(other) => Err(InvalidOrder::Direction(excerpt(other))),
            },
            (false, Some(direction)) => Ok(Order::by_creation(direction)),
            (false, None) => Order::parse(self.entries("order"), Direction::Ascending),
        };
        let parameter = if is_older { "orderBy" } else { "order" };
        order.map_err(|error| ParamsError::Order(parameter, error))
    }

    /// The filters of these kinds that are present; see [`Params::filter`].
    pub fn filters(
        &self,
        kinds: impl IntoIterator<Item = ListFilterKind>,
    ) -> Result<Vec<ListFilter>, ParamsError> {
        let filters = kinds.into_iter().map(|kind| self.filter(kind).transpose());
        filters.flatten().collect()
    }

    /// A filter of a list of resources; `None` if it is absent.
    pub fn filter(&self, kind: ListFilterKind) -> Result<Option<ListFilter>, ParamsError> {
        match kind {
            ListFilterKind::Kind => Ok(self.get("kind").map(|kind| ListFilter::Kind(kind.into()))),
            ListFilterKind::Search => match self.get("search").map(tsl::parse).transpose() {
                Ok(search) => Ok(search.map(ListFilter::Search)),
                Err(error) => Err(ParamsError::Search(error)),
            },
            ListFilterKind::IncludeDeleted => match self.get("includeDeleted") {
                None => Ok(None),
                Some("true") => Ok(Some(ListFilter::IncludeDeleted(true))),
                Some("false") => Ok(Some(ListFilter::IncludeDeleted(false))),
                Some(other) => {
                    let message = "must be true or false";
                    let violation = Violation::new("includeDeleted", Constraint::Enum, message);
                    Err(ParamsError::Invalid(
                        violation.with_value(excerpt(other)).into(),
                    ))
                }
            },
            ListFilterKind::Reference => {
                let link = self.get("ref_type").zip(self.get("ref_target_id"));
                Ok(link.map(|(ref_type, target)| ListFilter::Reference {
                    ref_type: ref_type.to_owned(),
                    target: ResourceId::parse(target),
                }))
            }
        }
    }

    /// Reads `at`: the time as of which a list is requested.
    pub fn at(&self) -> Result<Option<DateTime<Utc>>, ParamsError> {
        let mut violations = Violations::default();
        let at = self.parsed("at", TIME_EXPECTED, moment::parse, &mut violations);
        valid(violations, at)
    }

    /// Reads `at` or `generation`, which select an earlier state of a resource.
    pub fn moment(&self) -> Result<Option<PastMoment>, ParamsError> {
        let mut violations = Violations::default();
        let at = self.parsed("at", TIME_EXPECTED, moment::parse, &mut violations);
        let generation = |text: &str| text.parse().ok().filter(|number: &i32| *number > 0);
        let expected = "must be the number of a generation, from 1";
        let generation = self.parsed("generation", expected, generation, &mut violations);
        if at.is_some() && generation.is_some() {
            let message = "cannot be combined with at: each names one state";
            violations.push(Violation::new("generation", Constraint::Format, message));
        }
        let at = at.map(PastMoment::At);
        valid(violations, at.or(generation.map(PastMoment::Generation)))
    }

    /// Reads `includeDeleted` of a single resource: whether a removed one is to be named as such.
    pub fn shows_removed(&self) -> Result<bool, ParamsError> {
        let filter = self.filter(ListFilterKind::IncludeDeleted)?;
        Ok(filter == Some(ListFilter::IncludeDeleted(true)))
    }

    /// Reads `watch`, and where the watch begins: `position`, or `initial=true`. `None` if the list is not to be watched.
    /// `resumed` is the position that a client sends which connects again; it wins.
    pub fn watch(
        &self,
        resumed: Option<ChangePosition>,
    ) -> Result<Option<WatchStart>, ParamsError> {
        let mut violations = Violations::default();
        let is_watch = self.parsed("watch", BOOLEAN_EXPECTED, boolean, &mut violations);
        if is_watch != Some(true) && violations.is_empty() {
            return Ok(None);
        }
        let is_initial = self.parsed("initial", BOOLEAN_EXPECTED, boolean, &mut violations);
        let position = self.parsed(
            "position",
            "must be the position of an answer or an event, as it stands there",
            ChangePosition::parse,
            &mut violations,
        );
        if self.get("at").is_some() {
            let message = "cannot be combined with watch: an earlier state does not change";
            violations.push(Violation::new("at", Constraint::Format, message));
        }
        if position.is_some() && is_initial == Some(true) {
            let message = "cannot be combined with initial=true: it says itself where to begin";
            violations.push(Violation::new("position", Constraint::Format, message));
        }
        if !violations.is_empty() {
            return Err(ParamsError::Invalid(violations));
        }
        Ok(Some(match (resumed.or(position), is_initial) {
            (Some(position), _) => WatchStart::After(position),
            (None, Some(true)) => WatchStart::Initial,
            (None, _) => WatchStart::Now,
        }))
    }

    /// Reads `fields`, the selected members; `None` for all.
    pub fn fields(&self) -> Result<Option<Fields>, ParamsError> {
        Fields::parse(self.entries("fields")).map_err(ParamsError::Fields)
    }

    /// Whether the request is a dry run.
    ///
    /// # Errors
    ///
    /// Any value but `true`, and other spellings of the name: a change would be made that was not to be.
    pub fn dry_run(&self) -> Result<bool, ParamsError> {
        let mut violations = Violations::default();
        let mut is_dry_run = false;
        for (name, value) in self.0.iter().filter(|(name, _)| is_like_dry_run(name)) {
            is_dry_run = true;
            let violation = |constraint, message: String| {
                Violation::new(excerpt(name), constraint, message).with_value(excerpt(value))
            };
            if name != DRY_RUN {
                let message = format!("the name of the parameter is {DRY_RUN}");
                violations.push(violation(Constraint::Enum, message));
            } else if value != "true" {
                violations.push(violation(Constraint::Enum, "must be true".to_owned()));
            }
        }
        valid(violations, is_dry_run)
    }

    /// Reads the filters of the audit trail.
    pub fn audit_filter(&self) -> Result<AuditFilter, ParamsError> {
        let mut violations = Violations::default();
        let filter = AuditFilter {
            resource_id: self.parsed(
                "resource_id",
                "must be the id of a resource",
                ResourceId::parse,
                &mut violations,
            ),
            kind: self.text("kind", &mut violations),
            actor: self.text("actor", &mut violations),
            action: self.parsed(
                "action",
                "must be create, patch, delete, hard_delete or force_delete",
                |text| text.parse().ok(),
                &mut violations,
            ),
            since: self.parsed("since", TIME_EXPECTED, moment::parse, &mut violations),
            until: self.parsed("until", TIME_EXPECTED, moment::parse, &mut violations),
            after: self.parsed(
                "after",
                "must be the position of an answer as it stands there, or start",
                TrailPosition::parse,
                &mut violations,
            ),
        };
        if filter.after.is_some() && self.get("page").is_some() {
            let message = "cannot be combined with page: it says itself where to begin";
            violations.push(Violation::new("after", Constraint::Format, message));
        }
        valid(violations, filter)
    }

    fn text(&self, name: &str, violations: &mut Violations) -> Option<String> {
        let text = |text: &str| (!text.contains('\0')).then(|| text.to_owned());
        self.parsed(name, "must not contain the NUL character", text, violations)
    }

    fn parsed<T>(
        &self,
        name: &str,
        expected: &str,
        parse: impl Fn(&str) -> Option<T>,
        violations: &mut Violations,
    ) -> Option<T> {
        let text = self.get(name)?;
        let value = parse(text);
        if value.is_none() {
            let violation = Violation::new(name, Constraint::Format, expected);
            violations.push(violation.with_value(excerpt(text)));
        }
        value
    }
}

fn valid<T>(violations: Violations, value: T) -> Result<T, ParamsError> {
    if violations.is_empty() {
        Ok(value)
    } else {
        Err(ParamsError::Invalid(violations))
    }
}

const BOOLEAN_EXPECTED: &str = "must be true or false";

fn boolean(text: &str) -> Option<bool> {
    text.parse().ok()
}

/// The parameter of dry runs.
const DRY_RUN: &str = "dryRun";

fn is_like_dry_run(name: &str) -> bool {
    let letters = name.chars().filter(char::is_ascii_alphanumeric);
    letters.map(|c| c.to_ascii_lowercase()).eq("dryrun".chars())
}

/// The target of a request without the parameter of dry runs: the target of the request that would make the change.
/// `params` decodes one pair of the query.
pub fn real_target(target: &str, params: impl Fn(&str) -> Params) -> String {
    let Some((path, query)) = target.split_once('?') else {
        return target.to_owned();
    };
    let is_other = |pair: &&str| params(pair).0.iter().all(|(name, _)| name != DRY_RUN);
    let others: Vec<_> = query.split('&').filter(is_other).collect();
    match (others.is_empty(), others.len() == query.split('&').count()) {
        (_, true) => target.to_owned(),
        (true, false) => path.to_owned(),
        (false, false) => format!("{path}?{}", others.join("&")),
    }
}

const TIME_EXPECTED: &str = "must be a time with its zone (RFC 3339), such as 2026-01-01T10:00:00Z";

fn in_range(name: &str, number: i64, max: u32, violations: &mut Violations) -> Option<u32> {
    let violation =
        |constraint, message: String| Violation::new(name, constraint, message).with_value(number);
    if number < 1 {
        violations.push(violation(
            Constraint::Min,
            format!("{name} must be at least 1"),
        ));
    } else if number > i64::from(max) {
        violations.push(violation(
            Constraint::Max,
            format!("{name} must be at most {max}"),
        ));
    }
    u32::try_from(number).ok().filter(|n| (1..=max).contains(n))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperfleet_domain::audit::Action;

    fn params(query: &str) -> Params {
        let pairs = query.split('&').filter(|p| !p.is_empty());
        let pairs = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        Params::new(pairs.map(|(k, v)| (k.to_owned(), v.to_owned())).collect())
    }

    #[test]
    fn both_spellings_of_the_page_size_are_understood() {
        for (query, number, size) in [
            ("", 1, 20),
            ("page=&size= ", 1, 20),
            ("page= 3 &size=7", 3, 7),
            ("page=100000&size=100", 100_000, 100),
            ("pageSize=10", 1, 10),
            ("size=5&pageSize=10", 1, 10),
            ("pageSize=1000", 1, 100),
            ("size=9999&pageSize=10", 1, 10),
            ("page=2&page=2", 2, 20),
            ("page=&page=2", 2, 20),
        ] {
            assert_eq!(
                params(query).page(),
                Ok(PageRequest { number, size }),
                "{query}"
            );
        }
    }

    #[test]
    fn a_parameter_with_two_values_is_invalid() {
        for query in [
            "search=a&search=b",
            "page=1&page=2",
            "continue=A&continue=B",
            "includeDeleted=true&includeDeleted=false",
            "orderBy=name&order=asc&order=desc",
            "watch=true&watch=false&at=1&at=2",
        ] {
            let Err(ParamsError::Invalid(violations)) = params(query).checked() else {
                panic!("{query} is accepted");
            };
            assert!(
                violations
                    .as_slice()
                    .iter()
                    .all(|f| f.constraint == Constraint::Unique)
            );
        }
        for query in [
            "search=a&search=a",
            "search=a&search=&search= a ",
            "order=name&order=kind&fields=id&fields=name",
            "unknown=1&unknown=2",
            "dryRun=true&dryRun=true",
            "",
        ] {
            assert_eq!(params(query).checked(), Ok(params(query)), "{query}");
        }
    }

    #[test]
    fn pages_out_of_range_are_named() {
        for (query, expected) in [
            ("page=abc", vec![("page", "must be a valid integer")]),
            ("page=1.5&size=0", vec![("page", "must be a valid integer")]),
            (
                "page=9223372036854775808",
                vec![("page", "must be a valid integer")],
            ),
            ("size=0", vec![("size", "size must be at least 1")]),
            (
                "pageSize=0",
                vec![("pageSize", "pageSize must be at least 1")],
            ),
            ("size=101", vec![("size", "size must be at most 100")]),
            ("page=100001", vec![("page", "page must be at most 100000")]),
            (
                "page=4294967297",
                vec![("page", "page must be at most 100000")],
            ),
            (
                "page=0&size=-1",
                vec![
                    ("size", "size must be at least 1"),
                    ("page", "page must be at least 1"),
                ],
            ),
        ] {
            let Err(ParamsError::Invalid(violations)) = params(query).page() else {
                panic!("{query} was taken");
            };
            let found: Vec<_> = violations
                .as_slice()
                .iter()
                .map(|f| (&*f.field, &*f.message))
                .collect();
            assert_eq!(found, expected, "{query}");
        }
    }

    #[test]
    fn both_notations_of_the_order_are_understood() {
        let newest = Order::newest_first();
        let parse = |text: &str| Order::parse(text.split(','), Direction::Ascending).unwrap();
        for (query, expected) in [
            ("", newest.clone()),
            ("order=", newest.clone()),
            ("order=desc", newest.clone()),
            ("order=asc", parse("created_time")),
            ("order=name desc,generation", parse("name desc,generation")),
            ("order=name&order=generation", parse("name,generation")),
            ("orderBy=name", parse("name")),
            ("orderBy=name&order=desc", parse("name desc")),
            (
                "orderBy=name asc,generation&order=desc",
                parse("name asc,generation desc"),
            ),
        ] {
            assert_eq!(params(query).order(), Ok(expected), "{query}");
        }
        for query in [
            "orderBy=name&order=up",
            "order=name up",
            "orderBy=nmae",
            "order=spec->x",
        ] {
            assert!(params(query).order().is_err(), "{query}");
        }
    }

    #[test]
    fn a_watch_begins_where_the_client_says() {
        let at = |number| WatchStart::After(ChangePosition { era: 0, number });
        let resumed = Some(ChangePosition { era: 0, number: 9 });
        for (query, resumed, expected) in [
            ("", None, None),
            ("watch=false&position=x", None, None),
            ("watch=", resumed, None),
            ("watch=true", None, Some(WatchStart::Now)),
            ("watch=true&initial=false", None, Some(WatchStart::Now)),
            ("watch=true&initial=true", None, Some(WatchStart::Initial)),
            ("watch=true&initial=true", resumed, Some(at(9))),
            ("watch=true&position=0-7", None, Some(at(7))),
            ("watch=true&position=0-7", resumed, Some(at(9))),
        ] {
            assert_eq!(params(query).watch(resumed), Ok(expected), "{query}");
        }
        for query in [
            "watch=1",
            "watch=true&at=2026-01-01T10:00:00Z",
            "watch=true&initial=yes",
            "watch=true&position=7",
            "watch=true&position=0-7&initial=true",
        ] {
            assert!(params(query).watch(None).is_err(), "{query}");
        }
    }

    #[test]
    fn a_dry_run_is_asked_for_in_one_way() {
        for (query, expected) in [
            ("", false),
            ("run=true&dry=true", false),
            ("dryRun=true", true),
            ("x=y&dryRun=true&dryRun=true", true),
        ] {
            assert_eq!(params(query).dry_run(), Ok(expected), "{query}");
        }
        for (query, field, message) in [
            ("dryRun=All", "dryRun", "must be true"),
            ("dryRun=false", "dryRun", "must be true"),
            ("dryRun=", "dryRun", "must be true"),
            ("dryRun", "dryRun", "must be true"),
            ("dryRun=true&dryRun=false", "dryRun", "must be true"),
            (
                "dryrun=true",
                "dryrun",
                "the name of the parameter is dryRun",
            ),
            (
                "dry_run=true",
                "dry_run",
                "the name of the parameter is dryRun",
            ),
            ("Dry-Run", "Dry-Run", "the name of the parameter is dryRun"),
        ] {
            let Err(ParamsError::Invalid(violations)) = params(query).dry_run() else {
                panic!("{query} was taken");
            };
            let found: Vec<_> = violations.as_slice().iter().collect();
            assert_eq!(found.len(), 1, "{query}");
            assert_eq!((&*found[0].field, &*found[0].message), (field, message));
        }
    }

    #[test]
    fn the_target_of_a_dry_run_is_that_of_the_request_itself() {
        for (target, expected) in [
            ("/a", "/a"),
            ("/a?", "/a?"),
            ("/a?b=c&d", "/a?b=c&d"),
            ("/a?dryRun=true", "/a"),
            ("/a?b=c&dryRun=true&d", "/a?b=c&d"),
            ("/a?dryRun=true&b", "/a?b"),
        ] {
            assert_eq!(real_target(target, params), expected, "{target}");
        }
    }

    #[test]
    fn an_earlier_state_is_named_by_a_time_or_a_generation() {
        let at = moment::parse("2026-01-01T10:00:00Z").unwrap();
        for (query, expected) in [
            ("", None),
            ("at=&generation=", None),
            ("at=2026-01-01T10:00:00Z", Some(PastMoment::At(at))),
            ("at=2026-01-01T11:00:00%2B01:00", None),
            ("generation=7", Some(PastMoment::Generation(7))),
        ] {
            // Values are decoded before they come here.
            let query = query.replace("%2B", "+");
            let expected = expected.or((query.contains('+')).then_some(PastMoment::At(at)));
            assert_eq!(params(&query).moment(), Ok(expected), "{query}");
        }
        for query in [
            "at=friday",
            "at=2026-01-01T10:00:00",
            "generation=0",
            "generation=-1",
            "generation=2147483648",
            "generation=1&at=2026-01-01T10:00:00Z",
        ] {
            assert!(params(query).moment().is_err(), "{query}");
        }
        assert_eq!(params("includeDeleted=true").shows_removed(), Ok(true));
        assert_eq!(params("includeDeleted=false").shows_removed(), Ok(false));
        assert!(params("includeDeleted=yes").shows_removed().is_err());
    }

    #[test]
    fn audit_filters_are_checked() {
        let filter = params("actor=a&action=force_delete&since=2026-01-01T00:00:00Z")
            .audit_filter()
            .unwrap();
        assert_eq!(filter.actor.as_deref(), Some("a"));
        assert_eq!(filter.action, Some(Action::ForceDelete));
        assert_eq!(filter.after, None);
        let filter = params("after=start&size=5").audit_filter().unwrap();
        assert_eq!(filter.after, Some(TrailPosition::START));
        for query in [
            "action=drop",
            "since=yesterday",
            "until=2026-01-01T00:00:00",
            "resource_id=1",
            "actor=\0",
            "after=7",
            "after=start&page=1",
        ] {
            assert!(params(query).audit_filter().is_err(), "{query:?}");
        }
    }
}
