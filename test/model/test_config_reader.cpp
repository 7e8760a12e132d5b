#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "runtime/error.hpp"
#include "runtime/model/config_reader.hpp"
#include "runtime/model/known_words.hpp"

using namespace rankine;
using Catch::Matchers::Contains;
using nlohmann::json;

TEST_CASE("a config is read by key", "[model][config]") {
  const json config = json::parse(R"({"name": "d", "units": 3, "rate": 1, "flag": false, "axis": [-1, 2],
    "none": null, "unknown_but_null": null})");
  ConfigReader reader(config, "layer 'd' (Dense)");
  CHECK(reader.required<std::int64_t>("units") == 3);
  CHECK(reader.get<double>("rate", 0.5) == 1.0);
  CHECK(reader.get<bool>("flag", true) == false);
  CHECK(reader.get<bool>("absent", true) == true);
  CHECK(reader.required<std::vector<std::int64_t>>("axis") == std::vector<std::int64_t>{-1, 2});
  CHECK_FALSE(reader.optional<double>("none"));
  CHECK(reader.optional<double>("rate") == 1.0);
  reader.finish();
}

TEST_CASE("a config's faults are named", "[model][config]") {
  const auto refusal = [](const char* text, auto&& read) {
    const json config = json::parse(text);
    try {
      ConfigReader reader(config, "layer 'd' (Dense)");
      read(reader);
      reader.finish();
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string("nothing was refused");
  };
  const auto units = [](ConfigReader& reader) { (void)reader.required<std::int64_t>("units"); };
  CHECK_THAT(refusal("{}", units), Contains("layer 'd' (Dense) lacks the key 'units'"));
  CHECK_THAT(refusal("[]", units), Contains("isn't an object"));
  CHECK_THAT(refusal(R"({"units": "3"})", units), Contains("must be an integer"));
  CHECK_THAT(refusal(R"({"units": 3.5})", units), Contains("3.5"));
  CHECK_THAT(refusal(R"({"units": null})", units), Contains("must be an integer"));
  CHECK_THAT(refusal(R"({"units": 18446744073709551615})", units), Contains("must be an integer"));
  CHECK_THAT(refusal(R"({"units": 3, "unist": 4})", units),
             Contains("'unist'") && Contains("did you mean units?"));
  CHECK_THAT(
      refusal(R"({"units": 3, "wholly_other": 4})", units),
      Contains("'wholly_other'") && !Contains("did you mean") && Contains("name, trainable, dtype, units"));
  CHECK_THAT(refusal(R"({"units": 3, "activity_regularizer": {"class_name": "L2"}})", units),
             Contains("activity_regularizer") && Contains("isn't supported"));
  CHECK_THAT(refusal(R"({"units": 3, "other_constraint": "non_neg"})", units), Contains("other_constraint"));
  CHECK_THAT(refusal(R"({"units": 3, "lora_rank": 2})", units), Contains("lora_rank"));
  const auto initializer = [](ConfigReader& reader) { reader.initializer("kernel_initializer", "zeros"); };
  CHECK_THAT(refusal(R"({"kernel_initializer": "glorot"})", initializer),
             Contains("kernel_initializer") && Contains("'glorot'") && Contains("GlorotUniform, "));
}

TEST_CASE("the nearest word is found by edit distance", "[model][config]") {
  const std::vector<std::string> words = {"use_bias", "units", "activation"};
  CHECK(nearest_word("use_bais", words) == "use_bias");
  CHECK(nearest_word("unit", words) == "units");
  CHECK(nearest_word("activaton", words) == "activation");
  CHECK(nearest_word("completely_else", words).empty());
}
