//! The settings that there are. The one place in which a setting is added; each must have an effect.
//!
//! A setting is a field with its kind and default, its name in the file, what a project may do with it, and the option of
//! the command line that stands above it. Lines of documentation are those of `docs/settings.md`.

use crate::hook::HookList;
use crate::lists::{Folders, Hosts, TOOLS, ToolNames};
use crate::models::{OrOff, PriceList};
use crate::setting::{Guard, Setting, fewer_are_stricter, less_is_stricter, settings};
use crate::value::{Address, CommandLine, Count, ModelName, Patience, Size, Switch, Value, Wrong};
use crate::words::{Access, Approval, Durability, SandboxMode, Secrecy, ServiceTier};
use crate::yaml::Node;

const SHORTER: &str = "a shorter time is stricter";
const SMALLER: &str = "less is stricter";

settings! {
    /// Models.
    models: Models {
        /// Who answers in a new session: a provider and a model, or `scripted/FILE.jsonl`, which plays a script. A session
        /// that goes on keeps its model.
        default: ModelName = ModelName("anthropic/claude-sonnet-4-5".into());
            key "models.default"; guard Guard::Trusted; flag "--model";
        /// Who answers in plan mode, if not the model of the session. A session that goes on keeps it.
        plan: Option<ModelName> = None;
            key "models.plan"; guard Guard::Trusted;
        /// How soon the requests of a new session are served, and for which price: `auto` as the account is set up, `default`
        /// the standard way. OpenAI has `flex` (cheaper, slower, not always there), `priority` and `scale`; Anthropic uses
        /// capacity that was bought for it, unless `default` stands here. Servers that know no tiers ignore it. A session that
        /// goes on keeps its tier.
        tier: ServiceTier = ServiceTier::Auto;
            key "serviceTier"; guard Guard::Trusted;
        /// What a million tokens of a model cost, in US dollars, where gjc does not know it or you pay another price: by the
        /// model's name without its provider, in each tier. Cache prices that are not given are that of `input`. An answer of
        /// a model without a price costs nothing that is told. `gjc config set` takes all of it on one line:
        /// `{my-model: {input: 3, output: 15}}`.
        prices: PriceList = PriceList(Vec::new());
            key "prices"; guard Guard::Trusted;
    }

    /// The provider `anthropic`.
    anthropic: Anthropic {
        /// Where the provider is reached, if not at its own address. A server that is named here may need no key.
        url: Option<Address> = None;
            key "providers.anthropic.url";
            guard Guard::Never("it would send your key and your words to a server of its choice");
            flag "--provider-url";
        /// A command that prints the key, run with `sh -c` when a session with a model of this provider begins,
        /// `ANTHROPIC_API_KEY` is not set and the keyring has no key (`gjc config key`): once in a process, for at most 30
        /// seconds, without a terminal. What it prints is shown nowhere.
        key_command: Option<CommandLine> = None;
            key "providers.anthropic.keyCommand";
            guard Guard::Never("it would run a command of its choice");
    }

    /// The provider `openai`, for the wires `openai` and `openai-responses`.
    openai: OpenAi {
        /// Where the provider is reached, if not at its own address: any server that speaks one of the wires. A server on this
        /// machine needs no key.
        url: Option<Address> = None;
            key "providers.openai.url";
            guard Guard::Never("it would send your key and your words to a server of its choice");
            flag "--provider-url"; variable "OPENAI_BASE_URL";
        /// A command that prints the key, as for `anthropic`, where `OPENAI_API_KEY` is not set and the keyring has none.
        key_command: Option<CommandLine> = None;
            key "providers.openai.keyCommand";
            guard Guard::Never("it would run a command of its choice");
    }

    /// Tools.
    tools: Tools {
        /// The tools of a new session; `fetch` comes with `fetch.enabled` where nothing is said here. A session that goes on
        /// keeps its tools.
        names: ToolNames = ToolNames(TOOLS.iter().map(|name| (*name).to_owned()).collect());
            key "tools"; guard fewer_are_stricter("fewer tools are stricter"); flag "--tools";
    }

    /// What a person is asked.
    approval: Approvals {
        /// What a person is asked before it runs ([approvals](approvals.md)). `ask`: whatever changes files or acts outside.
        /// `auto-edit`: whatever acts outside of the workspace. `full`: nothing. `read-only`: nothing, and nothing is changed.
        /// Where nothing is set it is `ask` in a terminal, and `full` with `-p`, `--mode json` and `--mode rpc`. A session that
        /// goes on never gets looser than it was by a setting, only by the option.
        mode: Option<Approval> = None;
            key "approval";
            guard Guard::Tighten { looser: Approval::is_looser, order: "read-only, then ask, then auto-edit, then full" };
            flag "--approval";
    }

    /// What commands may reach.
    sandbox: Sandbox {
        /// How commands are held: by what the kernel has (`auto`), by all of it or they do not run (`require`), not at all
        /// (`off`). `gjc doctor` tells what this system can hold. A session that goes on is held no looser than it was,
        /// unless the option says so.
        mode: SandboxMode = SandboxMode::Auto;
            key "sandbox.mode"; guard less_is_stricter::<SandboxMode>("require, then auto, then off"); flag "--sandbox";
        /// Whether commands in the sandbox reach the network, this machine's own ports included. A session that goes on
        /// reaches no more than it did, unless the option says so.
        network: Access = Access::Allowed;
            key "sandbox.network"; guard less_is_stricter::<Access>("denied is stricter"); flag "--sandbox-network";
        /// Folders that commands may write to, beside the repository of the working folder. One that is not there is told
        /// and left out. The option stands in its place.
        write: Folders = Folders(Vec::new());
            key "sandbox.write";
            guard Guard::Never("its commands could write outside of the project");
            flag "--sandbox-write";
    }

    /// Background jobs.
    jobs: Jobs {
        /// How many background jobs of a session may run at a time.
        most: Count<1, 100> = Count(15);
            key "async.maxJobs"; guard less_is_stricter::<Count<1, 100>>("fewer are stricter");
        /// How long `job` waits at most for the end of a job before it says that the job still runs.
        poll_wait: Patience<1_000, 300_000> = Patience(30_000);
            key "async.pollWaitDuration"; guard less_is_stricter::<Patience<1_000, 300_000>>(SHORTER);
    }

    /// Sessions.
    session: SessionSettings {
        /// When what happened is made safe against a power cut. `turn`: before a tool acts outside and at the end of each
        /// turn. `entry`: each entry too, as it comes. `none`: after its first turn nothing waits for the disk while the
        /// session runs; it is made safe when it is closed. Whatever stands here, the death of gjc itself loses nothing.
        durability: Durability = Durability::Turn;
            key "session.durability"; guard less_is_stricter::<Durability>("entry, then turn, then none");
    }

    /// Sharing sessions.
    share: ShareSettings {
        /// A command that reads the page of a session on its standard input and puts it somewhere, run with `sh -c` in the
        /// home folder; `GJC_SHARE_NAME` is a name for it, and the last address that it prints is told. Without one `gh` makes
        /// a secret gist.
        command: Option<CommandLine> = None;
            key "share.command";
            guard Guard::Never("it would send sessions to a place of its choice");
        /// How secret a session may be that is shared there.
        level: Secrecy = Secrecy::Public;
            key "share.level"; guard less_is_stricter::<Secrecy>("PUBLIC, then INTERNAL, then CONFIDENTIAL, then RESTRICTED");
    }

    /// Requests that failed before anything was shown.
    retry: Retry {
        /// How often a request is sent again.
        attempts: Count<0, 20> = Count(5);
            key "retry.attempts"; guard less_is_stricter::<Count<0, 20>>("fewer are stricter");
        /// The longest wait before that. A provider that asks for more is not asked again.
        longest_delay: Patience<0, 3_600_000> = Patience(60_000);
            key "retry.longestDelay"; guard less_is_stricter::<Patience<0, 3_600_000>>(SHORTER);
        /// The longest time that a session waits for the reset of a usage limit, where the provider names it: with a visible
        /// countdown, which an abort ends, and once; then the turn goes on. `off`: the turn ends, and the sentence names the
        /// time of the reset.
        wait_for_quota: OrOff<Patience<1_000, 691_200_000>> = OrOff(None);
            key "retry.waitForQuota";
            guard less_is_stricter::<OrOff<Patience<1_000, 691_200_000>>>("off, then a shorter time");
    }

    /// The tool `bash`.
    bash: Bash {
        /// How long a command may run when the model gives no time; never more than `bash.longestTimeout`.
        timeout: Patience<1_000, 86_400_000> = Patience(120_000);
            key "bash.timeout"; guard less_is_stricter::<Patience<1_000, 86_400_000>>(SHORTER);
        /// The longest time that the model may give.
        longest_timeout: Patience<1_000, 86_400_000> = Patience(600_000);
            key "bash.longestTimeout"; guard less_is_stricter::<Patience<1_000, 86_400_000>>(SHORTER);
        /// How much of the beginning of an output is shown. All of a longer one is kept in a file.
        keep_head: Size<256, 1_048_576> = Size(16_384);
            key "bash.keepHead"; guard less_is_stricter::<Size<256, 1_048_576>>(SMALLER);
        /// How much of the end of an output is shown.
        keep_tail: Size<256, 1_048_576> = Size(16_384);
            key "bash.keepTail"; guard less_is_stricter::<Size<256, 1_048_576>>(SMALLER);
    }

    /// The tool `fetch`.
    fetch: FetchSettings {
        /// Whether there is a tool that gets pages of the web. A session that began without it goes on without it.
        enabled: Switch = Switch(false);
            key "fetch.enabled"; guard less_is_stricter::<Switch>("off is stricter");
        /// Servers that may be on this machine or in its own network, as they stand in an address; all others must be on the
        /// Internet, redirects included.
        allow_hosts: Hosts = Hosts(Vec::new());
            key "fetch.allowHosts";
            guard Guard::Never("it would let pages reach servers that only this machine reaches");
        /// How long a page may take, redirects included.
        timeout: Patience<1_000, 600_000> = Patience(30_000);
            key "fetch.timeout"; guard less_is_stricter::<Patience<1_000, 600_000>>(SHORTER);
    }

    /// Programs that are run at events.
    hooks: Hooks {
        /// Programs that are asked before a call of a tool runs; each answers `allow` or `block` ([hooks](hooks.md)). `match`
        /// chooses the tools, `timeout` is 30s if nothing is said.
        pre_tool_call: HookList<true> = HookList(Vec::new());
            key "hooks.pre_tool_call"; guard Guard::Adds;
        /// Programs that hear the result of a call, and may add a text for the model.
        post_tool_response: HookList<true> = HookList(Vec::new());
            key "hooks.post_tool_response"; guard Guard::Adds;
        /// Programs that are asked before an answer counts as the answer of the turn; each answers `allow` or `block`.
        pre_output: HookList<false> = HookList(Vec::new());
            key "hooks.pre_output"; guard Guard::Adds;
        /// Programs that hear how a turn has ended.
        turn_end: HookList<false> = HookList(Vec::new());
            key "hooks.turn_end"; guard Guard::Adds;
        /// Programs that are asked before another session takes the place of the one that is open; each answers `allow` or
        /// `block`.
        session_before_switch: HookList<false> = HookList(Vec::new());
            key "hooks.session_before_switch"; guard Guard::Adds;
        /// Programs that hear that another session has taken the place.
        session_switch: HookList<false> = HookList(Vec::new());
            key "hooks.session_switch"; guard Guard::Adds;
        /// Programs that are asked before a session is branched; each answers `allow` or `block`.
        session_before_branch: HookList<false> = HookList(Vec::new());
            key "hooks.session_before_branch"; guard Guard::Adds;
        /// Programs that hear that a session was branched.
        session_branch: HookList<false> = HookList(Vec::new());
            key "hooks.session_branch"; guard Guard::Adds;
    }
}
