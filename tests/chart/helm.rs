//! helm, and what it renders.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize as _;
use serde_json::Value;

use crate::CHART;

/// Programs and schemas of `scripts/helm-programs`.
pub(crate) struct Helm {
    folder: PathBuf,
}

impl Helm {
    pub(crate) fn found() -> Option<Self> {
        let folder = PathBuf::from(".dev/helm");
        if folder.join("made").is_file() {
            return Some(Self { folder });
        }
        let required = ["CI", "HELM_REQUIRED"].map(std::env::var_os);
        let is_required = required.iter().any(Option::is_some);
        assert!(!is_required, "helm is required here: scripts/helm-programs");
        println!("SKIPPED: helm is missing: scripts/helm-programs");
        None
    }

    pub(crate) fn command(&self, args: &[String]) -> Command {
        let mut command = Command::new(self.folder.join("helm"));
        command.args(args);
        command
    }

    pub(crate) fn kubeconform(&self) -> Command {
        Command::new(self.folder.join("kubeconform"))
    }

    pub(crate) fn schemas(&self) -> PathBuf {
        self.folder.join("schemas")
    }

    /// The schemas of a Kubernetes that the chart supports, by its minor version.
    pub(crate) fn schemas_of(&self, version: &str) -> PathBuf {
        self.folder.join(format!("schemas-{version}"))
    }

    /// The objects of a release, or what helm says against it.
    pub(crate) fn template(&self, release: &str, args: &[String]) -> Result<Objects, String> {
        self.template_of(CHART.as_ref(), release, args)
    }

    pub(crate) fn template_of(
        &self,
        chart: &Path,
        release: &str,
        args: &[String],
    ) -> Result<Objects, String> {
        let chart = chart.to_str().unwrap();
        let fixed = ["template", release, chart, "--namespace=fleet"].map(str::to_owned);
        let args = [&fixed, args].concat();
        let output = self.command(&args).output().unwrap();
        if !output.status.success() {
            return Err(String::from_utf8(output.stderr).unwrap());
        }
        let text = String::from_utf8(output.stdout).unwrap();
        let documents = yaml_serde::Deserializer::from_str(&text);
        let values = documents.map(|document| Value::deserialize(document).unwrap());
        Ok(Objects(values.filter(|value| !value.is_null()).collect()))
    }

    /// With a file of values.
    pub(crate) fn case(&self, release: &str, file: &Path) -> Objects {
        let args = [format!("--values={}", file.display())];
        let objects = self.template(release, &args);
        objects.unwrap_or_else(|said| panic!("{}: {said}", file.display()))
    }

    /// With an image, without authentication, and with what `values` says as YAML.
    pub(crate) fn render(&self, values: &str) -> Result<Objects, String> {
        self.render_with(values, &[])
    }

    /// With further arguments for helm, files of values among them; what `values` says counts more than these.
    pub(crate) fn render_with(&self, values: &str, more: &[&str]) -> Result<Objects, String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("values.yaml");
        std::fs::write(&file, values).unwrap();
        let base = format!("--values={CHART}/ci/default-values.yaml");
        let own = format!("--values={}", file.display());
        let more = more.iter().copied().map(str::to_owned);
        let args: Vec<String> = [base].into_iter().chain(more).chain([own]).collect();
        self.template("test", &args)
    }

    pub(crate) fn rendered(&self, values: &str) -> Objects {
        let objects = self.render(values);
        objects.unwrap_or_else(|said| panic!("{values}: {said}"))
    }

    /// With these values and no others, which must be refused.
    pub(crate) fn refused(&self, values: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("values.yaml");
        std::fs::write(&file, values).unwrap();
        let result = self.template("test", &[format!("--values={}", file.display())]);
        result.err().unwrap_or_else(|| panic!("taken: {values}"))
    }
}

/// What a release consists of.
pub(crate) struct Objects(Vec<Value>);

impl Deref for Objects {
    type Target = [Value];

    fn deref(&self) -> &[Value] {
        &self.0
    }
}

impl Objects {
    pub(crate) fn find(&self, kind: &str, name: &str) -> Option<&Value> {
        let mut all = self.0.iter();
        all.find(|object| object["kind"] == kind && object["metadata"]["name"] == name)
    }

    pub(crate) fn get(&self, kind: &str, name: &str) -> &Value {
        let found = self.find(kind, name);
        found.unwrap_or_else(|| panic!("no {kind} {name}"))
    }

    pub(crate) fn has(&self, kind: &str) -> bool {
        self.0.iter().any(|object| object["kind"] == kind)
    }

    /// The service's own Deployment.
    pub(crate) fn deployment(&self) -> &Value {
        let mut all = self.0.iter();
        let of_service = |object: &&Value| {
            let component = "/metadata/labels/app.kubernetes.io~1component";
            object["kind"] == "Deployment" && object.pointer(component) == Some(&"api".into())
        };
        all.find(of_service).unwrap()
    }

    pub(crate) fn pod(&self) -> &Value {
        &self.deployment()["spec"]["template"]["spec"]
    }

    /// The program's container.
    pub(crate) fn container(&self) -> &Value {
        &self.pod()["containers"][0]
    }

    /// The file that the chart writes for the program, if it does.
    pub(crate) fn config(&self) -> Option<&str> {
        let of_config = |object: &&Value| object["kind"] == "ConfigMap";
        let maps = self.0.iter().filter(of_config);
        let mut files = maps.filter_map(|map| map["data"]["config.yaml"].as_str());
        files.next()
    }
}

/// The member of a list that has this name.
pub(crate) fn named<'a>(list: &'a Value, name: &str) -> &'a Value {
    let items = list.as_array().unwrap();
    let found = items.iter().find(|item| item["name"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {list}"))
}
