#include <catch2/catch.hpp>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "runtime/error.hpp"
#include "test/model/layer_run.hpp"

using namespace rankine;
using Catch::Matchers::Contains;
using nlohmann::json;

namespace {

Backend& backend() {
  static const std::unique_ptr<Backend> k_backend = make_cpu_backend(1, best_instruction_set());
  return *k_backend;
}

/// What making the layer and asking for its output says.
std::string refusal(const std::string& class_name, const json& config, const std::vector<ValueSpec>& inputs) {
  try {
    make_layer(class_name, config)->output(inputs);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

const ValueSpec k_row{{6}};
const ValueSpec k_sequence{{5, 6}};

LayerRun dropout(const json& config, std::int64_t samples, std::int64_t width) {
  LayerRun run("Dropout", config, DType::float32);
  const std::vector<double> ones(static_cast<std::size_t>(samples * width), 1.0);
  run.set_inputs({Array::of({samples, width}, DType::float32, ones)});
  return run;
}

}  // namespace

TEST_CASE("every kind of layer has one row of the table", "[layers]") {
  std::set<std::string_view> names;
  for (const LayerKind& kind : layer_kinds()) CHECK(names.insert(kind.class_name).second);
  for (const LayerKind& kind : operation_kinds())
    CHECK(find_operation_kind(kind.module, kind.class_name) == &kind);
  for (const char* name : {"Dense", "EinsumDense", "Embedding", "LayerNormalization", "RMSNormalization",
                           "Dropout", "Activation", "Softmax", "Add", "Multiply", "Concatenate", "Reshape",
                           "Flatten", "GlobalAveragePooling1D", "MultiHeadAttention", "GroupQueryAttention"})
    CHECK(names.count(name) == 1);
}

TEST_CASE("options that aren't supported are refused by layer and option", "[layers]") {
  const auto [class_name, config, inputs,
              words] = GENERATE(table<std::string, json, std::vector<ValueSpec>, std::vector<std::string>>({
      {"Dense", {{"units", 4}, {"activation", "sparsemax"}}, {k_row}, {"sparsemax", "softmax"}},
      {"Dense", {{"units", 4}, {"activation", "gelo"}}, {k_row}, {"did you mean gelu"}},
      {"Dense", {{"units", 0}}, {k_row}, {"units", "at least 1"}},
      {"Dense",
       {{"units", 4}, {"activity_regularizer", {{"class_name", "L2"}}}},
       {k_row},
       {"activity_regularizer", "isn't supported"}},
      {"Dense",
       {{"units", 4}, {"bias_regularizer", "l3"}},
       {k_row},
       {"bias_regularizer", "'l3'", "L1, L2, L1L2"}},
      {"Dense",
       {{"units", 4}, {"kernel_regularizer", {{"class_name", "L2"}, {"config", {{"l1", 0.1}}}}}},
       {k_row},
       {"kernel_regularizer", "'l1'", "l2"}},
      {"Dense",
       {{"units", 4}, {"kernel_constraint", "half_norm"}},
       {k_row},
       {"'half_norm'", "MaxNorm, MinMaxNorm"}},
      {"Dense", {{"units", 4}}, {{{6}, DType::int32}}, {"int32", "float32"}},
      {"Dense", {{"units", 4}}, {k_row, k_row}, {"1 input", "with 2"}},
      {"Embedding", {{"input_dim", 4}, {"output_dim", 4}}, {k_row}, {"int32"}},
      {"Dropout", {{"rate", 0.1}, {"noise_shape", {1, 1}}}, {k_row}, {"noise_shape"}},
      {"Dropout", {{"rate", 1.5}}, {k_row}, {"rate"}},
      {"LayerNormalization", {{"axis", 1}}, {k_sequence}, {"last axes"}},
      {"LayerNormalization", {{"axis", 0}}, {k_sequence}, {"axis 0"}},
      {"Softmax", {{"axis", {1, 2}}}, {k_sequence}, {"several axes"}},
      {"Concatenate", {{"axis", 0}}, {k_row, k_row}, {"axis 0", "batch"}},
      {"Concatenate", {{"axis", -1}}, {k_row, k_sequence}, {"can't join"}},
      {"Add", json::object(), {k_row, {{5}}}, {"(6,)", "(5,)"}},
      {"Subtract", json::object(), {k_row, k_row, k_row}, {"2 inputs"}},
      {"Reshape", {{"target_shape", {4, -1}}}, {k_row}, {"(4, -1)", "(6,)"}},
      {"Reshape", {{"target_shape", {-1, -1}}}, {k_row}, {"more than one -1"}},
      {"Flatten", {{"data_format", "channels_first"}}, {k_sequence}, {"channels_first"}},
      {"GlobalAveragePooling1D", {{"data_format", "channels_first"}}, {k_sequence}, {"channels_first"}},
      {"GlobalAveragePooling1D", json::object(), {k_row}, {"(steps, features)"}},
      {"Permute", {{"dims", {1, 1}}}, {k_sequence}, {"dims"}},
      {"EinsumDense", {{"equation", "ab,bc->ad"}, {"output_shape", 4}}, {k_row}, {"'ab,bc->ad'", "label"}},
      {"EinsumDense", {{"equation", "ab;bc"}, {"output_shape", 4}}, {k_row}, {"input,kernel->output"}},
      {"EinsumDense", {{"equation", "ab,bc->ca"}, {"output_shape", 4}}, {k_row}, {"batch"}},
      {"EinsumDense", {{"equation", "ab,bc->ac"}, {"output_shape", {4, 5}}}, {k_row}, {"output_shape"}},
      {"EinsumDense", {{"equation", "abc,bc->ac"}, {"output_shape", 4}}, {k_row}, {"3 input labels"}},
      {"EinsumDense",
       {{"equation", "ab,bc->ac"}, {"output_shape", 4}, {"bias_axes", "d"}},
       {k_row},
       {"bias axis d"}},
      {"EinsumDense", {{"equation", "abc,cd->abd"}, {"output_shape", {3, 4}}}, {k_sequence}, {"label b"}},
      {"MultiHeadAttention",
       {{"num_heads", 2}, {"key_dim", 3}, {"dropout", 1.0}},
       {k_sequence, k_sequence},
       {"dropout", "below 1"}},
      {"MultiHeadAttention",
       {{"num_heads", 2}, {"key_dim", 3}, {"dropout", 0.1}},
       {{{100000, 6}}, {{100000, 6}}},
       {"dropout", "random numbers"}},
      {"MultiHeadAttention",
       {{"num_heads", 2}, {"key_dim", 3}, {"sliding_window", 0}},
       {k_sequence, k_sequence},
       {"sliding_window", "at least 1"}},
      {"MultiHeadAttention",
       {{"num_heads", 2}, {"key_dim", 3}, {"attention_axes", {1, 2}}},
       {k_sequence, k_sequence},
       {"attention_axes"}},
      {"MultiHeadAttention", {{"num_heads", 2}, {"key_dim", 3}}, {k_sequence}, {"with 1 inputs"}},
      {"GroupQueryAttention",
       {{"head_dim", 3}, {"num_query_heads", 4}, {"num_key_value_heads", 3}},
       {k_sequence, k_sequence},
       {"4 query heads"}},
  }));
  const std::string text = refusal(class_name, config, inputs);
  INFO(class_name << " " << config << ": " << text);
  CHECK_THAT(text, Contains("'tested' (" + class_name + ")"));
  for (const std::string& word : words) CHECK_THAT(text, Contains(word));
}

TEST_CASE("attention names its sublayers as weights files do", "[layers]") {
  const auto groups = [](const std::string& class_name, const json& config) {
    LayerRun run(class_name, config, DType::float32);
    run.set_inputs({Array::of({1, 5, 6}, DType::float32), Array::of({1, 5, 6}, DType::float32)});
    std::vector<std::string> names;
    for (const DeclaredVariable& variable : run.variables()) names.push_back(variable.group);
    for (const auto& [attribute, name] : run.layer().empty_groups()) names.push_back(attribute);
    return names;
  };
  CHECK(groups("MultiHeadAttention", {{"num_heads", 2}, {"key_dim", 3}}) ==
        std::vector<std::string>{"query_dense", "query_dense", "key_dense", "key_dense", "value_dense",
                                 "value_dense", "output_dense", "output_dense", "_softmax",
                                 "_dropout_layer"});
  CHECK(groups("GroupedQueryAttention",
               {{"head_dim", 3}, {"num_query_heads", 2}, {"num_key_value_heads", 1}, {"use_bias", false}}) ==
        std::vector<std::string>{"_query_dense", "_key_dense", "_value_dense", "_output_dense", "_softmax",
                                 "_dropout_layer"});
}

TEST_CASE("fans of attention and equations count whole products", "[layers]") {
  LayerRun attention("MultiHeadAttention", {{"num_heads", 8}, {"key_dim", 64}}, DType::float32);
  attention.set_inputs({Array::of({1, 2, 512}, DType::float32), Array::of({1, 2, 512}, DType::float32)});
  for (const DeclaredVariable& variable : attention.variables()) {
    if (variable.name != "kernel") continue;
    CHECK(variable.fans.in == 512.0);
    CHECK(variable.fans.out == 512.0);
  }
  LayerRun einsum("EinsumDense", {{"equation", "abcd,cde->abe"}, {"output_shape", {nullptr, 512}}},
                  DType::float32);
  einsum.set_inputs({Array::of({1, 2, 8, 64}, DType::float32)});
  CHECK(einsum.variables()[0].fans.in == 512.0);
  CHECK(einsum.variables()[0].fans.out == 512.0);
}

TEST_CASE("dropout drops a share, the same wherever a sample is computed", "[layers]") {
  constexpr std::int64_t k_samples = 16, k_width = 500;
  LayerRun run = dropout({{"rate", 0.25}, {"seed", nullptr}}, k_samples, k_width);
  const std::vector<double> ones(k_samples * k_width, 1.0);
  const Array cotangent = Array::of({k_samples, k_width}, DType::float32, ones);
  const auto whole = run.run(backend(), 0, k_samples, cotangent);
  std::size_t dropped = 0;
  for (const float y : whole.output.singles) {
    if (y == 0.0F) {
      ++dropped;
    } else {
      CHECK(std::abs(y - 1.0F / 0.75F) < 1e-6F);
    }
  }
  // 8000 draws with probability 1/4: five standard deviations are 194.
  CHECK(std::abs(static_cast<double>(dropped) - 2000.0) < 194.0);
  CHECK(whole.input_gradients[0].singles == whole.output.singles);
  CHECK(run.run(backend(), 4, 9, cotangent).output.singles == whole.output.rows(4, 9).singles);
  run.step = 4;
  CHECK(run.run(backend(), 0, k_samples, cotangent).output.singles != whole.output.singles);
}

TEST_CASE("dropout follows training", "[layers]") {
  LayerRun run = dropout({{"rate", 0.5}}, 4, 50);
  const std::vector<float> ones(200, 1.0F);
  run.training = false;
  CHECK(run.run(backend(), 0, 4, {}).output.singles == ones);
  run.training = true;
  CHECK(run.run(backend(), 0, 4, {}).output.singles != ones);
  const ValueSpec spec{{50}};
  CHECK_FALSE(run.layer().plan({&spec, 1}, {}).output_is_input);
  CHECK(make_layer("Dropout", {{"rate", 0.0}})->plan({&spec, 1}, {}).output_is_input);
  LayerRun everything = dropout({{"rate", 1.0}}, 4, 50);
  CHECK(everything.run(backend(), 0, 4, {}).output.singles == std::vector<float>(200, 0.0F));
}

TEST_CASE("an id outside the table is named with its layer", "[layers]") {
  LayerRun run("Embedding", {{"name", "tokens"}, {"input_dim", 3}, {"output_dim", 2}}, DType::float32);
  run.set_inputs({Array::of({1, 2}, DType::int32, {1, 3})});
  run.set_weights({Array::of({3, 2}, DType::float32, {1, 2, 3, 4, 5, 6})});
  CHECK_THROWS_WITH(run.run(backend(), 0, 1, {}), Contains("tokens") && Contains("3"));
}

TEST_CASE("attention drops the same weights wherever a sample is computed", "[layers]") {
  const json config = {{"num_heads", 2}, {"key_dim", 3}, {"dropout", 0.5}};
  LayerRun run("MultiHeadAttention", config, DType::float32);
  std::vector<double> values;
  for (int i = 0; i < 4 * 5 * 6; ++i) values.push_back(std::sin(1.0 + i));
  const Array x = Array::of({4, 5, 6}, DType::float32, values);
  run.set_inputs({x, x}, true);
  std::vector<Array> weights;
  for (const DeclaredVariable& variable : run.variables()) {
    std::vector<double> w(static_cast<std::size_t>(variable.shape.elements()));
    for (std::size_t i = 0; i < w.size(); ++i) w[i] = std::cos(static_cast<double>(i + weights.size()));
    weights.push_back(Array::of(variable.shape, DType::float32, w));
  }
  run.set_weights(std::move(weights));
  const auto output = [&](std::int64_t begin, std::int64_t end) {
    return run.run(backend(), begin, end, {}).output;
  };
  const Array whole = output(0, 4);
  CHECK(whole.rows(0, 2).singles == output(0, 2).singles);
  CHECK(whole.rows(2, 4).singles == output(2, 4).singles);
  CHECK(output(0, 4).singles == whole.singles);
  ++run.step;
  CHECK(output(0, 4).singles != whole.singles);
  run.training = false;
  const Array still = output(0, 4);
  CHECK(still.singles != whole.singles);
  ++run.step;
  CHECK(output(0, 4).singles == still.singles);
}

TEST_CASE("layers keep no more than their gradient needs", "[layers]") {
  const ValueSpec spec{{6}};
  const auto plan = [&](const char* activation) {
    return make_layer("Dense", {{"units", 4}, {"activation", activation}})->plan({&spec, 1}, {});
  };
  CHECK(plan("linear").saved.empty());
  CHECK_FALSE(plan("linear").backward_reads_output);
  CHECK(plan("relu").saved.empty());
  CHECK(plan("relu").backward_reads_output);
  CHECK(plan("relu").forward_scratch.empty());
  CHECK(plan("softmax").saved.empty());
  CHECK(plan("gelu").saved.size() == 1);
  CHECK_FALSE(plan("gelu").backward_reads_output);
}
