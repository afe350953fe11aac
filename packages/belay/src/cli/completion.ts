import { Argument, type Command } from "commander";
import { withExamples } from "./verb.ts";

type Shell = "bash" | "zsh" | "fish";

/** The words that may follow `path`: subcommands, flags, and the choices of its first argument. */
interface Words {
  readonly path: string;
  readonly subcommands: readonly { name: string; about: string }[];
  readonly flags: readonly { name: string; about: string }[];
}

/** `belay completion bash|zsh|fish`. */
export function defineCompletion(program: Command): void {
  const command = program
    .command("completion")
    .summary("print completion for a shell")
    .description("Prints completion of commands and flags for a shell.")
    .addArgument(new Argument("<shell>", "the shell").choices(["bash", "zsh", "fish"]))
    .action((shell: Shell) => {
      const words = collectWords(program, "");
      console.log({ bash: toBash, zsh: toZsh, fish: toFish }[shell](words));
    });
  withExamples(command, [
    ["source <(belay completion bash)", "for this shell; put it in ~/.bashrc to keep it"],
    ["belay completion zsh > ~/.zfunc/_belay", "a folder of your $fpath"],
    ["belay completion fish > ~/.config/fish/completions/belay.fish", "kept"],
  ]);
}

function collectWords(command: Command, path: string): Words[] {
  const help = command.createHelp();
  const subcommands = help.visibleCommands(command);
  const choices = command.registeredArguments.flatMap((it) => it.argChoices ?? []);
  const here: Words = {
    path,
    subcommands: [
      ...subcommands.map((it) => ({ name: it.name(), about: it.summary() || it.description() })),
      ...choices.map((name) => ({ name, about: "" })),
    ],
    flags: help
      .visibleOptions(command)
      .flatMap((it) => [it.long, it.short].map((name) => ({ name, about: it.description })))
      .flatMap(({ name, about }) => (name ? [{ name, about }] : [])),
  };
  const below = command.commands.flatMap((it) =>
    it.name() === "help" ? [] : collectWords(it, `${path} ${it.name()}`.trim()),
  );
  return [here, ...below];
}

/** A shell function's body that sets `path` to the commands typed so far. */
const CASES = (words: readonly Words[]): string =>
  words
    .map((it) => {
      const all = [...it.subcommands, ...it.flags].map(({ name }) => name);
      return `    "${it.path}") words="${all.join(" ")}" ;;`;
    })
    .join("\n");

function toBash(words: readonly Words[]): string {
  return `# bash completion for belay
_belay() {
  local current="\${COMP_WORDS[COMP_CWORD]}" path="" words="" word
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    [ "$word" = "--" ] && return
    case "\${path:+$path }$word" in
      ${words.flatMap((it) => (it.path === "" ? [] : [`"${it.path}"`])).join("|")}) path="\${path:+$path }$word" ;;
    esac
  done
  case "$path" in
${CASES(words)}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  [ \${#COMPREPLY[@]} -eq 0 ] && COMPREPLY=($(compgen -f -- "$current"))
}
complete -F _belay belay`;
}

function toZsh(words: readonly Words[]): string {
  return `#compdef belay
# zsh completion for belay
_belay() {
  local path="" words_here="" word
  for word in \${words[2,CURRENT-1]}; do
    [[ "$word" == "--" ]] && { _files; return }
    case "\${path:+$path }$word" in
      ${words.flatMap((it) => (it.path === "" ? [] : [`"${it.path}"`])).join("|")}) path="\${path:+$path }$word" ;;
    esac
  done
  case "$path" in
${CASES(words).replaceAll("words=", "words_here=")}
  esac
  compadd -- \${=words_here}
  _files
}
compdef _belay belay`;
}

/** A word in single quotes, as fish reads it. */
function quote(text: string): string {
  return `'${text.replaceAll(/['\\]/g, "\\$&")}'`;
}

function toFish(words: readonly Words[]): string {
  const lines = words.flatMap((it) => {
    const typed = it.path === "" ? [] : it.path.split(" ");
    const below = it.subcommands.map(({ name }) => name).join(" ");
    const seen = typed.map((word) => `__fish_seen_subcommand_from ${word}`);
    const not = below === "" ? [] : [`not __fish_seen_subcommand_from ${below}`];
    const when = quote([...seen, ...not].join("; and ") || "true");
    return [
      ...it.subcommands.map(
        ({ name, about }) => `complete -c belay -f -n ${when} -a ${name} -d ${quote(about)}`,
      ),
      ...it.flags
        .filter(({ name }) => name.startsWith("--"))
        .map(
          ({ name, about }) =>
            `complete -c belay -n ${when} -l ${name.slice(2)} -d ${quote(about)}`,
        ),
    ];
  });
  return `# fish completion for belay\n${lines.join("\n")}`;
}
