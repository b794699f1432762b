//! Stores units before they are loaded or started.

use std::process::ExitCode;

use anyhow::Context as _;
use hyperfleet_fleet_model::unit::{DesiredState, Options};
use hyperfleet_fleet_model::wire::UnitView;

use crate::cli::SubmitArgs;
use crate::client::Client;
use crate::output;
use crate::session::Session;
use crate::source::{
    Source, SourceError, Stored, UnitArgument, check, decide_stored, differing_instances,
    differing_template, local_file, read_file, stored_options,
};

/// Units that exist now.
pub(super) struct Ensured {
    pub(super) names: Vec<String>,
    /// Those that were stored or replaced, with the desired state of the command.
    pub(super) stored: Vec<String>,
    /// Fails if a unit was not replaced as asked.
    pub(super) exit: ExitCode,
}

/// Stores each missing unit with a desired state, and with `--replace` replaces others whose desired state is not
/// above it.
pub(super) async fn ensure(
    session: &Session,
    args: &SubmitArgs,
    state: DesiredState,
) -> anyhow::Result<Ensured> {
    if args.sign {
        output::notice(
            "WARNING: The signed/verified units feature is DEPRECATED and cannot be used.",
        );
    }
    let client = session.client().await?;
    let mut ensuring = Ensuring {
        client,
        state,
        replaces: args.replace,
        compared: Vec::new(),
        has_refused: false,
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
    Ok(Ensured {
        names,
        stored,
        exit: if ensuring.has_refused {
            ExitCode::FAILURE
        } else {
            ExitCode::SUCCESS
        },
    })
}

struct Ensuring<'c> {
    client: &'c Client,
    /// The desired state of stored units.
    state: DesiredState,
    /// Whether units with another file are replaced, if their desired state is not above that.
    replaces: bool,
    /// Templates whose instances were compared with them.
    compared: Vec<String>,
    /// Whether a unit could not be replaced.
    has_refused: bool,
}

impl Ensuring<'_> {
    /// Stores one unit; `false` if it stays unchanged.
    async fn ensure(&mut self, argument: &UnitArgument) -> anyhow::Result<bool> {
        let name = &argument.name;
        let options = match self.client.unit(name).await? {
            None => self.options_of_new(argument).await?,
            Some(stored) => {
                let local = self.source_of_stored(argument).await?;
                let hash = stored_options(&stored)?.hash();
                let replace_up_to = self.replaces.then_some(self.state);
                match decide_stored(name, hash, stored.desired, local, replace_up_to) {
                    Stored::Replace(options) => options,
                    Stored::Keep { notice, is_refused } => {
                        if let Some(notice) = notice {
                            output::notice(&notice);
                        }
                        self.has_refused |= is_refused;
                        return Ok(false);
                    }
                }
            }
        };
        for warning in check(name, &options)? {
            output::notice(&format!("WARNING: {warning}"));
        }
        let put = self.client.put_unit(name, options.list(), self.state);
        put.await?;
        if argument.is_template() {
            self.compare_instances(name, &options).await?;
        }
        Ok(true)
    }

    /// The file to compare a stored unit with, or to replace its file by: a local one, or for `--replace` also the
    /// stored template.
    async fn source_of_stored(&self, argument: &UnitArgument) -> anyhow::Result<Option<Source>> {
        let replaces = self.replaces;
        match local_file(argument) {
            Ok(Some(file)) => return Ok(Some(file)),
            Ok(None) if replaces => {}
            Ok(None) => return Ok(None),
            Err(error) if replaces => return Err(error.into()),
            Err(error) => {
                // The unit is stored: its file is not needed.
                output::notice(&format!("WARNING: {error}"));
                return Ok(None);
            }
        }
        let stored = match argument.template() {
            Some(template) => self.client.unit(&template).await?,
            None => None,
        };
        let Some(template) = stored else {
            output::notice(&format!(
                "WARNING: Unit {} has no local unit file {}: it is not replaced",
                argument.name,
                argument.path.display()
            ));
            return Ok(None);
        };
        Ok(Some(Source {
            options: stored_options(&template)?,
            path: template.name.into(),
        }))
    }

    /// The file of a unit that is not stored.
    async fn options_of_new(&mut self, argument: &UnitArgument) -> anyhow::Result<Options> {
        if let Some(options) = read_file(&argument.path)? {
            return Ok(options);
        }
        let Some(template) = argument.template() else {
            return Err(SourceError::NoUnit(argument.name.clone()).into());
        };
        let path = argument.template_path();
        let local = match path {
            Some(path) => read_file(&path)?.map(|options| Source { path, options }),
            None => None,
        };
        let stored = match self.client.unit(&template).await? {
            Some(stored) => Some(stored_options(&stored)?),
            None => None,
        };
        let options = match (stored, local) {
            (None, None) => return Err(SourceError::NoTemplate(template).into()),
            (None, Some(local)) => local.options,
            (Some(stored), Some(local)) if stored.hash() != local.options.hash() => {
                output::notice(&differing_template(&template, &local.path, self.replaces));
                if self.replaces { local.options } else { stored }
            }
            (Some(stored), _) => stored,
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
