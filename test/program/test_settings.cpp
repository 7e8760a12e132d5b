#include <algorithm>
#include <catch2/catch.hpp>
#include <set>
#include <string>
#include <vector>

#include "runtime/error.hpp"
#include "test/data/scratch.hpp"
#include "tools/rankine/flag_parser.hpp"

using namespace rankine;
using Catch::Contains;
using test::ScratchFolder;

namespace {

constexpr auto k_evaluate = ModelCommand::evaluate, k_predict = ModelCommand::predict;

Settings parse(const std::vector<std::string>& arguments, ModelCommand command = ModelCommand::train) {
  return parse_settings(command, arguments);
}

std::string refusal(const std::vector<std::string>& arguments, ModelCommand command = ModelCommand::train) {
  try {
    parse(arguments, command);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

std::vector<std::string> with(const std::vector<std::string>& more) {
  std::vector<std::string> arguments{"--model", "m.keras", "--data", "d.h5"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

/// Parses with a job file of this content.
class JobFile {
 public:
  explicit JobFile(const std::string& content) : path_(folder_.write("job.toml", content)) {}
  std::vector<std::string> arguments(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> all{"--config", path_};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

 private:
  ScratchFolder folder_;
  std::string path_;
};

}  // namespace

TEST_CASE("flags set what they name and leave the rest", "[program]") {
  const Settings settings =
      parse(with({"--batch=64", "--steps", "10", "--no-shuffle", "--isa", "portable", "--seed", "7"}));
  CHECK(settings.model == "m.keras");
  CHECK(settings.data == "d.h5");
  CHECK(settings.batch == 64);
  CHECK(settings.steps == 10);
  CHECK(settings.no_shuffle);
  CHECK(settings.isa == "portable");
  CHECK(settings.seed == 7);
  CHECK(settings.epochs == Settings{}.epochs);
  CHECK_FALSE(settings.quiet);
}

TEST_CASE("numbers that make no sense are refused with what is right", "[program]") {
  for (const char* bad : {"0", "-1", "1.5", "many", "", "99999999999999999999"}) {
    CAPTURE(bad);
    CHECK_THAT(refusal(with({"--batch", bad})), Contains("--batch") && Contains("at least 1"));
  }
  CHECK_THAT(refusal(with({"--epochs", "0"})), Contains("--epochs"));
  CHECK_THAT(refusal(with({"--steps", "-3"})), Contains("--steps") && Contains("'-3'"));
  CHECK_THAT(refusal(with({"--accumulate", "0"})), Contains("--accumulate"));
  CHECK_THAT(refusal(with({"--threads", "0"})), Contains("--threads") && Contains("from 1 to 1024"));
  CHECK_THAT(refusal(with({"--threads", "99999999999"})), Contains("from 1 to 1024"));
  CHECK_THAT(refusal(with({"--seed", "-1"})), Contains("--seed") && Contains("at least 0"));
}

TEST_CASE("flags that aren't there are refused with the nearest", "[program]") {
  CHECK_THAT(refusal(with({"--batchs", "3"})),
             Contains("no flag --batchs") && Contains("did you mean --batch?"));
  CHECK_THAT(refusal(with({"--frobnicate"})), Contains("--frobnicate") && !Contains("did you mean"));
  CHECK_THAT(refusal(with({"more"})), Contains("'more' isn't a flag"));
  CHECK_THAT(refusal(with({"--"})), !Contains("did you mean"));
  CHECK_THAT(refusal(with({"--batch"})), Contains("--batch"));
  CHECK_THAT(refusal(with({"--batch", "1", "--batch", "2"})), Contains("--batch"));
}

TEST_CASE("what training can't do without is asked for", "[program]") {
  CHECK_THAT(refusal({}), Contains("--model is missing"));
  CHECK_THAT(refusal({"--model", "m.keras"}), Contains("--data FILE.h5, --text FILE or --tokens FILE"));
  CHECK_THAT(refusal({"--model", "", "--data", "d"}), Contains("--model is empty"));
}

TEST_CASE("settings that answer the same question exclude each other", "[program]") {
  CHECK_THAT(refusal(with({"--steps", "3", "--epochs", "2"})),
             Contains("--epochs and --steps exclude each other"));
  CHECK_THAT(refusal(with({"--text", "t"})), Contains("--data and --text"));
  CHECK_THAT(refusal({"--model", "m", "--text", "t", "--tokens", "k"}), Contains("--text and --tokens"));
  const JobFile both("model = 'm'\ndata = 'd'\nepochs = 2\nsteps = 3\n");
  CHECK_THAT(refusal(both.arguments()), Contains("line 3") && Contains("line 4"));
}

TEST_CASE("each command takes what it can use", "[program]") {
  CHECK_THAT(refusal(with({"--epochs", "2"}), k_evaluate),
             Contains("evaluate doesn't take the flag --epochs"));
  CHECK_THAT(refusal(with({"--outputs", "o"}), k_predict), Contains("did you mean --output?"));
  CHECK_THAT(refusal(with({}), k_predict), Contains("--output is missing"));
  CHECK_THAT(refusal({"--model", "m", "--text", "t"}, k_predict), Contains("--text"));
  CHECK(parse(with({"--batch", "7"}), k_evaluate).batch == 7);
  CHECK(parse(with({"--output", "o"}), k_predict).output == "o");
  // One job file serves all commands; what this one doesn't take is checked all the same.
  const JobFile job("model = 'm'\ndata = 'd'\nepochs = 3\nbatch = 5\n[inputs]\np = 'arange'\n");
  CHECK(parse(job.arguments({"--output", "o"}), k_predict).batch == 5);
  CHECK(parse(job.arguments({"--output", "o"}), k_predict).epochs == Settings{}.epochs);
  CHECK_THAT(refusal(JobFile("model = 'm'\nepochs = 0\n").arguments(), k_evaluate), Contains("line 2"));
}

TEST_CASE("weights alone or with the optimizer", "[program]") {
  CHECK(parse(with({"--init-from", "w"})).init_from == "w");
  CHECK_THAT(refusal(with({"--init-from", "w", "--weights", "v"})),
             Contains("--weights and --init-from exclude each other"));
}

TEST_CASE("the size of tokens is checked", "[program]") {
  const std::vector<std::string> tokens{"--model", "m", "--tokens", "t"};
  CHECK(parse(tokens).token_bytes == 2);
  CHECK(parse({"--model", "m", "--tokens", "t", "--token-bytes", "4"}).token_bytes == 4);
  CHECK_THAT(refusal({"--model", "m", "--tokens", "t", "--token-bytes", "3"}), Contains("must be 2 or 4"));
  CHECK_THAT(refusal(with({"--token-bytes", "4"})), Contains("--tokens only"));
}

TEST_CASE("the job file has the flags as keys, and a flag wins", "[program]") {
  const JobFile job(
      "# a job\n"
      "model = \"my model.keras\"   # with a space\n"
      "data = 'run #1, second.h5'\n"
      "batch = 128\n"
      "epochs = 3\n"
      "no-shuffle = true\n"
      "quiet = false\n");
  const Settings settings = parse(job.arguments());
  CHECK(settings.model == "my model.keras");
  CHECK(settings.data == "run #1, second.h5");
  CHECK(settings.batch == 128);
  CHECK(settings.epochs == 3);
  CHECK(settings.no_shuffle);
  CHECK_FALSE(settings.quiet);
  CHECK(parse(job.arguments({"--batch", "4"})).batch == 4);
  CHECK(parse(job.arguments({"--steps", "9"})).epochs == Settings{}.epochs);
  const Settings text = parse(job.arguments({"--text", "t"}));
  CHECK(text.data.empty());
  CHECK(text.text == "t");
}

TEST_CASE("every setting but config is a key of the job file", "[program]") {
  std::set<std::string_view> names;
  for (const Setting& row : setting_table()) {
    CAPTURE(row.name);
    CHECK((names.insert(row.name).second || row.name == "output"));
    CHECK_FALSE(row.help.empty());
    const bool is_switch = std::holds_alternative<bool Settings::*>(row.target);
    CHECK(row.placeholder.empty() == is_switch);
    const JobFile job(std::string(row.name) + " = " + (is_switch ? "true" : "4") + "\n");
    const std::string told = refusal(job.arguments());
    CHECK((told.find("there is no key") != std::string::npos) == (row.name == "config"));
    for (const ModelCommand command : {ModelCommand::train, k_evaluate, k_predict}) {
      const bool takes = (row.commands & static_cast<unsigned>(command)) != 0;
      const std::string flag = "--" + std::string(row.name);
      if (takes)
        CHECK_THAT(settings_help(command),
                   Contains(flag) && Contains("rankine " + std::string(name_of(command))));
    }
  }
}

TEST_CASE("wrong job files are refused with line and reason", "[program]") {
  const auto told = [](const std::string& content) { return refusal(JobFile(content).arguments()); };
  CHECK_THAT(told("\nbatchs = 3\n"), Contains("line 2") && Contains("'batchs'; did you mean batch?"));
  CHECK_THAT(told("batch = 0\n"), Contains("line 1: batch must be a whole number of at least 1"));
  CHECK_THAT(told("quiet = yes\n"), Contains("true or false, not 'yes'"));
  CHECK_THAT(told("batch\n"), Contains("isn't of the form key = value"));
  CHECK_THAT(told("batch =\n"), Contains("key = value"));
  CHECK_THAT(told("batch = 1\nbatch = 2\n"),
             Contains("line 2: 'batch' was already set") && Contains("line 1"));
  CHECK_THAT(told("model = two words\n"), Contains("takes one value"));
  CHECK_THAT(told("batch = [1, 2]\n"), Contains("takes one value"));
  CHECK_THAT(told("[train]\nbatch = 1\n"), Contains("no section [train]") && Contains("[compile]"));
  CHECK_THAT(told("[compile\n"), Contains("a section is written [name]"));
  CHECK_THAT(told("[compile]\nmetrics = [\"a\",\n"), Contains("line 2") && Contains("isn't closed"));
  CHECK_THAT(told("config = \"other.toml\"\n"), Contains("no key 'config'"));
  CHECK_THAT(told("[compile]\noptimizer = '{\"a\": '\n"), Contains("isn't valid JSON"));
  CHECK_THAT(refusal({"--config", "/nowhere/job.toml"}), Contains("No such file"));
}

TEST_CASE("[compile] becomes JSON", "[program]") {
  const JobFile job(
      "model = 'm'\ndata = 'd'\n"
      "[compile]\n"
      "optimizer = '{\"class_name\": \"Adam\", \"config\": {\"beta_1\": 0.5}}'\n"
      "learning_rate = 0.001\n"
      "amsgrad = true\n"
      "loss = \"mse\"\n"
      "metrics = [\n  \"accuracy\",   # the share that is right\n  \"mse\"\n]\n"
      "loss_weights = [1.0, 0.5]\n");
  const CompileOverrides compile = parse(job.arguments()).compile;
  CHECK(compile.at("optimizer") == R"({"class_name":"Adam","config":{"beta_1":0.5}})");
  CHECK(compile.at("learning_rate") == "0.001");
  CHECK(compile.at("amsgrad") == "true");
  CHECK(compile.at("loss") == "\"mse\"");
  CHECK(compile.at("metrics") == R"(["accuracy","mse"])");
  CHECK(compile.at("loss_weights") == "[1.0,0.5]");
}

TEST_CASE("settings are listed under the names by which they are set", "[program]") {
  const JobFile job("model = 'm'\ntext = 't'\n[inputs]\np = 'arange'\n[compile]\nloss = 'mse'\n");
  const auto list = list_settings(parse(job.arguments({"--batch", "9", "--quiet"})));
  const auto has = [&](const std::string& name, const std::string& value) {
    return std::find(list.begin(), list.end(), std::pair{name, value}) != list.end();
  };
  CHECK(has("model", "m"));
  CHECK(has("batch", "9"));
  CHECK(has("quiet", "true"));
  CHECK(has("[inputs] p", "arange"));
  CHECK(has("[compile] loss", "\"mse\""));
}

TEST_CASE("[inputs] names what counts positions", "[program]") {
  const JobFile job("model = 'm'\ntext = 't'\n[inputs]\npositions = \"arange\"\n");
  CHECK(parse(job.arguments()).arange_inputs == std::vector<std::string>{"positions"});
  CHECK_THAT(refusal(JobFile("model = 'm'\ntext = 't'\n[inputs]\npositions = \"zeros\"\n").arguments()),
             Contains("\"arange\" only, not \"zeros\""));
  CHECK_THAT(refusal(JobFile("model = 'm'\ndata = 'd'\n[inputs]\npositions = \"arange\"\n").arguments()),
             Contains("--text or --tokens only"));
}
