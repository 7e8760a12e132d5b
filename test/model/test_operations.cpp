// What Keras writes for operators and keras.ops: what can't be read is refused by the operation's name.
// Values are in the golden layer cases.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "runtime/error.hpp"
#include "test/model/layer_run.hpp"

using namespace rankine;
using Catch::Matchers::Contains;
using json = nlohmann::json;

namespace {

json tensor(const char* dtype = "float32") {
  return {{"class_name", "__keras_tensor__"}, {"config", {{"dtype", dtype}, {"keras_history", {"x", 0, 0}}}}};
}
json slice(json start, json stop, json step = nullptr) {
  return {{"class_name", "__slice__"}, {"config", {{"start", start}, {"stop", stop}, {"step", step}}}};
}

json operation(const char* module, const char* class_name, json config, json arguments) {
  config["name"] = "op";
  return {{"module", std::string("keras.src.ops.") + module},
          {"class_name", class_name},
          {"config", std::move(config)},
          {"inbound_nodes", json::array({{{"args", std::move(arguments)}, {"kwargs", json::object()}}})}};
}

/// What an operation on samples of these shapes is refused with.
std::string refusal(const json& envelope, const std::vector<Shape>& samples) {
  std::vector<ValueSpec> inputs;
  for (const Shape& sample : samples) inputs.push_back({sample});
  try {
    (void)make_operation(envelope)->output(inputs);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "nothing was refused";
}

}  // namespace

TEST_CASE("operations that aren't supported are refused by name", "[model][operations][refusals]") {
  const json x = tensor(), none = json::object();
  const Shape matrix{3, 4};
  const auto numpy = [&](const char* name, json config, json arguments, const std::vector<Shape>& samples) {
    return refusal(operation("numpy", name, std::move(config), std::move(arguments)), samples);
  };
  CHECK_THAT(numpy("Divide", none, {x, x}, {matrix, matrix}),
             Contains("Divide") && Contains("a tensor by a tensor"));
  CHECK_THAT(numpy("Maximum", none, {x, 0.0}, {matrix}), Contains("Maximum") && Contains("takes a number"));
  CHECK_THAT(numpy("Add", none, {x, json::array({1.0, 2.0})}, {matrix}), Contains("single numbers"));
  CHECK_THAT(numpy("Add", none, {x, x}, {matrix, {3, 5}}), Contains("(3, 4)") && Contains("(3, 5)"));
  CHECK_THAT(numpy("Reshape", {{"newshape", {4, 12}}}, {x}, {matrix}), Contains("first size must be -1"));
  CHECK_THAT(numpy("Transpose", {{"axes", nullptr}}, {x}, {matrix}), Contains("the batch must stay first"));
  CHECK_THAT(numpy("Transpose", {{"axes", {1, 0, 2}}}, {x}, {matrix}), Contains("the first must be 0"));
  CHECK_THAT(numpy("Matmul", none, {x, x}, {matrix, matrix}),
             Contains("can't multiply") && Contains("(3, 4)"));
  CHECK_THAT(numpy("NotEqual", none, {x, 0.5}, {matrix}), Contains("NotEqual") && Contains("one integer"));
  CHECK_THAT(numpy("LogicalOr", none, {x, x}, {matrix, matrix}), Contains("takes int32"));
  CHECK_THAT(refusal(operation("nn", "Softmax", {{"axis", nullptr}}, {x}), {matrix}),
             Contains("axis = null"));
  CHECK_THAT(refusal(operation("nn", "Softmax", {{"axis", 0}}, {x}), {matrix}), Contains("the batch's"));
}

TEST_CASE("parts of a tensor that can't be taken are refused", "[model][operations][refusals]") {
  const json all = slice(nullptr, nullptr);
  const auto refused = [](json keys) {
    return refusal(operation("numpy", "GetItem", json::object(), {tensor(), std::move(keys)}), {{3, 4}});
  };
  CHECK_THAT(refused(2), Contains("part of the batch"));
  CHECK_THAT(refused({slice(0, 2), 1}), Contains("part of the batch"));
  CHECK_THAT(refused({nullptr, all}), Contains("in front of the batch"));
  CHECK_THAT(refused({all, 3}), Contains("index 3") && Contains("size 3"));
  CHECK_THAT(refused({all, slice(nullptr, nullptr, 0)}), Contains("a step of 0"));
  CHECK_THAT(refused({all, slice(0, 2, -1)}), Contains("takes nothing"));
  CHECK_THAT(refused({all, slice(2, 1)}), Contains("takes nothing"));
  CHECK_THAT(refused({all, 0, 0, 0}), Contains("more dimensions"));
}

TEST_CASE("one operation with different constants isn't one layer", "[model][operations][refusals]") {
  json envelope = operation("numpy", "Multiply", json::object(), {tensor(), 2.0});
  envelope["inbound_nodes"].push_back({{"args", {tensor(), 3.0}}, {"kwargs", json::object()}});
  CHECK_THAT(refusal(envelope, {{3, 4}}), Contains("different constants"));
}
