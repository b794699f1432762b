//! Stores units before they are loaded or started.

use anyhow::Context as _;
use hyperfleet_fleet_model::unit::{DesiredState, Options};
use hyperfleet_fleet_model::wire::UnitView;

use super::states::{self, Waiting};
use crate::cli::SubmitArgs;
use crate::client::Client;
use crate::output;
use crate::session::Session;
use crate::source::{
    SourceError, Stored, UnitArgument, check, decide_stored, differing_instances, local_file,
    read_file, stored_options,
};
use crate::wait::Goal;

/// Stores each missing unit, and with `--replace` replaces others whose desired state is at most `highest`.
/// Waits until stored ones are inactive. Returns the names of all.
pub(super) async fn ensure(
    session: &Session,
    args: &SubmitArgs,
    highest: DesiredState,
    waiting: Waiting,
) -> anyhow::Result<Vec<String>> {
    if args.sign {
        output::notice(
            "WARNING: The signed/verified units feature is DEPRECATED and cannot be used.",
        );
    }
    let client = session.client().await?;
    let mut ensuring = Ensuring {
        client,
        replace_up_to: args.replace.then_some(highest),
        compared: Vec::new(),
    };
    let (mut names, mut stored) = (Vec::new(), Vec::new());
    for argument in &args.names.units {
        let argument = UnitArgument::new(argument);
        if names.contains(&argument.name) {
            continue;
        }
        if ensuring
            .ensure(&argument)
            .await
            .context("Error creating units")?
        {
            stored.push(argument.name.clone());
        }
        names.push(argument.name);
    }
    if let Waiting::For(patience) = waiting {
        let goal = Goal::State(DesiredState::Inactive);
        states::wait(session, &stored, goal, patience).await?;
    }
    Ok(names)
}

struct Ensuring<'c> {
    client: &'c Client,
    replace_up_to: Option<DesiredState>,
    /// Templates whose instances were compared with them.
    compared: Vec<String>,
}

impl Ensuring<'_> {
    /// Stores one unit; `false` if it stays unchanged.
    async fn ensure(&mut self, argument: &UnitArgument) -> anyhow::Result<bool> {
        let name = &argument.name;
        let options = match self.client.unit(name).await? {
            None => self.options_of_new(argument).await?,
            Some(stored) => {
                let local = match (local_file(argument), self.replace_up_to) {
                    (Err(error), None) => {
                        // The unit is stored: its file is not needed.
                        output::notice(&format!("WARNING: {error}"));
                        None
                    }
                    (local, _) => local?,
                };
                let hash = stored_options(&stored)?.hash();
                match decide_stored(name, hash, stored.desired, local, self.replace_up_to) {
                    Stored::Replace(options) => options,
                    Stored::Keep { notice } => {
                        if let Some(notice) = notice {
                            output::notice(&notice);
                        }
                        return Ok(false);
                    }
                }
            }
        };
        for warning in check(name, &options)? {
            output::notice(&format!("WARNING: {warning}"));
        }
        self.client.put_unit(name, options.list()).await?;
        Ok(true)
    }

    /// The file of a unit that is not stored.
    async fn options_of_new(&mut self, argument: &UnitArgument) -> anyhow::Result<Options> {
        if let Some(options) = read_file(&argument.path)? {
            return Ok(options);
        }
        let Some(template) = argument.template() else {
            return Err(SourceError::NoUnit(argument.name.clone()).into());
        };
        let options = if let Some(stored) = self.client.unit(&template).await? {
            stored_options(&stored)?
        } else {
            let path = argument.template_path();
            let file = path.map(|path| read_file(&path)).transpose()?.flatten();
            file.ok_or_else(|| SourceError::NoTemplate(template.clone()))?
        };
        self.compare_instances(&template, &options).await?;
        Ok(options)
    }

    /// Warns of instances made from another file than their template has now.
    async fn compare_instances(&mut self, template: &str, options: &Options) -> anyhow::Result<()> {
        if self.compared.iter().any(|compared| compared == template) {
            return Ok(());
        }
        self.compared.push(template.to_owned());
        let units = self.client.units().await?;
        let hash = |unit: &UnitView| Some((unit.name.clone(), stored_options(unit).ok()?.hash()));
        let units: Vec<_> = units.iter().filter_map(hash).collect();
        if let Some(warning) = differing_instances(template, options, &units) {
            output::notice(&warning);
        }
        Ok(())
    }
}
