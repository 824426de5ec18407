#include "coordinator/client/data_command.h"

#include <sysexits.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "coordinator/client/data_python.h"
#include "coordinator/client/whole_number.h"

namespace motley::client {
namespace {

struct DataFlags {
  std::string python;
  // setup
  std::string wheels;
  bool parquet = false;
  // prepare
  std::vector<std::string> inputs;
  std::string tokenizer, out, eos = "auto", train = "assistant", chat_template, day, column;
  int64_t seq_len = 0, skip_bad = 0, processes = 0;
  std::vector<std::string> template_args;
  bool no_pack = false;
  // show
  std::string folder;
  int64_t row = -1;
  bool tokens = false;
};

// The program's words; an option that was not given is left to it.
class Words {
 public:
  explicit Words(const char* command) : words_{command} {}
  Words& Add(const char* name, const std::string& value) {
    if (!value.empty()) words_.push_back(absl::StrCat(name, "=", value));
    return *this;
  }
  Words& AddNumber(const char* name, int64_t value, int64_t unset) {
    return value == unset ? *this : Add(name, absl::StrCat(value));
  }
  Words& AddFlag(const char* name, bool given) {
    if (given) words_.push_back(name);
    return *this;
  }
  // A file may be called "-x".
  std::vector<std::string> With(const std::vector<std::string>& files) {
    words_.push_back("--");
    words_.insert(words_.end(), files.begin(), files.end());
    return words_;
  }
  std::vector<std::string> Take() { return words_; }

 private:
  std::vector<std::string> words_;
};

std::vector<std::string> PrepareWords(const Context& context, const DataFlags& flags) {
  Words words("prepare");
  words.Add("--tokenizer", flags.tokenizer).Add("--out", flags.out).AddNumber("--seq-len", flags.seq_len, 0);
  words.Add("--eos", flags.eos).AddFlag("--no-pack", flags.no_pack).Add("--train", flags.train);
  words.Add("--chat-template", flags.chat_template).Add("--day", flags.day).Add("--column", flags.column);
  for (const std::string& argument : flags.template_args) words.Add("--template-arg", argument);
  words.AddNumber("--skip-bad", flags.skip_bad, 0).AddNumber("--processes", flags.processes, 0);
  return words.AddFlag("--json", context.json).With(flags.inputs);
}

std::vector<std::string> ShowWords(const Context& context, const DataFlags& flags) {
  Words words("show");
  words.AddNumber("--row", flags.row, -1).AddFlag("--tokens", flags.tokens).AddFlag("--json", context.json);
  return words.With({flags.folder});
}

// Does not come back where `python` can be started: its exit code is this command's, and so are the signals.
Exit Become(Context& context, const std::string& python, const std::string& program, const std::vector<std::string>& words) {
  std::vector<std::string> all = {python, "-B", program};  // -B: nothing is written where it is installed
  all.insert(all.end(), words.begin(), words.end());
  std::vector<char*> pointers;
  for (std::string& word : all) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  context.out.flush();
  context.err.flush();
  execvp(python.c_str(), pointers.data());
  return {EX_UNAVAILABLE, absl::StrCat(python, " cannot be started: ", std::strerror(errno), "; --python names another Python")};
}

Exit Setup(Context& context, const DataFlags& flags) {
  const DataPlaces places = FindDataPlaces();
  const absl::StatusOr<std::string> program = DataProgram(places);
  if (!program.ok()) return {EX_UNAVAILABLE, std::string(program.status().message())};
  const absl::StatusOr<std::string> venv = DataVenv(places, *program);
  if (!venv.ok()) return {EX_UNAVAILABLE, std::string(venv.status().message())};
  Words words("setup");
  words.Add("--venv", *venv).Add("--wheels", flags.wheels).AddFlag("--parquet", flags.parquet).AddFlag("--json", context.json);
  return Become(context, flags.python.empty() ? "python3" : flags.python, *program, words.Take());
}

Exit RunProgram(Context& context, const DataFlags& flags, const std::vector<std::string>& words) {
  const DataPlaces places = FindDataPlaces();
  const absl::StatusOr<std::string> program = DataProgram(places);
  if (!program.ok()) return {EX_UNAVAILABLE, std::string(program.status().message())};
  const absl::StatusOr<std::string> python = DataPython(places, *program, flags.python);
  if (!python.ok()) return {EX_UNAVAILABLE, std::string(python.status().message())};
  return Become(context, *python, *program, words);
}

void AddPrepareFlags(CLI::App& app, DataFlags& flags) {
  app.add_option("FILE", flags.inputs,
                 "text, JSON Lines (.jsonl), one JSON array (.json), Parquet; the first three also as .gz, .zst")
      ->required();
  app.add_option("--tokenizer", flags.tokenizer, "the model's folder, which holds tokenizer.json")
      ->type_name("FOLDER")
      ->required();
  app.add_option("--out", flags.out, "the folder to write; it must not be there yet")->type_name("FOLDER")->required();
  app.add_option("--seq-len", flags.seq_len, "of chats: the most tokens of a row, the sequence length of the job")
      ->type_name("N")
      ->check(CLI::Range(2, 1 << 20));
  app.add_option("--eos", flags.eos,
                 "what ends a document of text: the tokenizer's end token (auto, on), nothing (off), or this TOKEN")
      ->type_name("auto|on|off|TOKEN")
      ->capture_default_str();
  app.add_option("--train", flags.train, "what of a chat is trained on")
      ->type_name("PART")
      ->check(CLI::IsMember({"assistant", "last", "each", "all"}))
      ->capture_default_str();
  app.add_flag("--no-pack", flags.no_pack, "each chat gets a row of its own");
  app.add_option("--chat-template", flags.chat_template, "a template in place of the folder's")->type_name("FILE");
  app.add_option("--template-arg", flags.template_args, "a variable of the template; may be given more than once")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  app.add_option("--day", flags.day, "the day that a template writes, by default today's")->type_name("YYYY-MM-DD");
  app.add_option("--column", flags.column, "the column that holds the text or the messages")->type_name("NAME");
  app.add_option("--skip-bad", flags.skip_bad, "leave out as many records that cannot be taken, each named")
      ->type_name("N")
      ->check(WholeFrom(0));
  app.add_option("--processes", flags.processes, "how many encode at a time, by default one for each core")
      ->type_name("N")
      ->check(WholeFrom(1));
}

}  // namespace

Action AddData(CLI::App& app) {
  auto flags = std::make_shared<DataFlags>();
  CLI::App* setup = app.add_subcommand("setup", "make the Python that the others run in, once; not needed with --python");
  setup->add_option("--wheels", flags->wheels, "a folder of wheels, where there is no network")->type_name("FOLDER");
  setup->add_flag("--parquet", flags->parquet, "with what reads Parquet, 50 MB more to download");
  CLI::App* prepare = app.add_subcommand("prepare", "make a folder of tokens from text or chats");
  AddPrepareFlags(*prepare, *flags);
  prepare->footer("Example: motley data prepare --tokenizer Qwen2.5-0.5B --seq-len 2048 --out tokens/chats chats.jsonl");
  CLI::App* show = app.add_subcommand("show", "what a folder of tokens holds, or one row of it as text");
  show->add_option("FOLDER", flags->folder, "what 'motley data prepare' has written")->required();
  show->add_option("--row", flags->row, "this row, from 0 on; of text this document")->type_name("N")->check(WholeFrom(0));
  show->add_flag("--tokens", flags->tokens, "a line for each token");
  for (CLI::App* sub : {setup, prepare, show}) {
    sub->fallthrough();
    sub->add_option("--python", flags->python,
                    sub == setup ? "the Python to begin from, 3.11 to 3.14" : "a Python that has transformers")
        ->type_name("PROGRAM");
  }
  app.require_subcommand(1);
  app.footer("docs/use/data-command.md says how chats become rows, and what is trained on.");
  return [=](Context& context) {
    if (setup->parsed()) return Setup(context, *flags);
    return RunProgram(context, *flags, prepare->parsed() ? PrepareWords(context, *flags) : ShowWords(context, *flags));
  };
}

}  // namespace motley::client
