#include <nlohmann/json.hpp>

#include "runtime/model/config_reader.hpp"
#include "runtime/model/layers/attention.hpp"
#include "runtime/model/layers/checks.hpp"
#include "runtime/model/layers/kinds.hpp"

namespace rankine {
namespace {

/// Keys that both kinds have.
void read_common(ConfigReader& reader, AttentionOptions& options) {
  options.use_bias = reader.get<bool>("use_bias", true);
  options.kernel_rules = reader.weight("kernel", "glorot_uniform");
  options.bias_rules = reader.weight("bias", "zeros");
  options.dropout = reader.get<double>("dropout", 0.0);
  if (!(options.dropout >= 0.0 && options.dropout < 1.0))
    reader.refuse("has dropout = " + std::to_string(options.dropout) + "; it must be at least 0 and below 1");
  options.use_gate = reader.get<bool>("use_gate", false);
  const auto window = reader.optional<std::int64_t>("sliding_window");
  if (window && *window < 1)
    reader.refuse("has sliding_window = " + std::to_string(*window) + "; it must be at least 1");
  options.window = window.value_or(0);
  reader.ignore({"seed", "flash_attention"});
}

/// null, an integer or a list of one.
std::int64_t read_output_dim(ConfigReader& reader) {
  const nlohmann::json* shape = reader.raw("output_shape");
  if (shape == nullptr || shape->is_null()) return 0;
  if (!shape->is_array()) return reader.required<std::int64_t>("output_shape");
  const auto sizes = reader.required<std::vector<std::int64_t>>("output_shape");
  if (sizes.size() != 1) reader.refuse("has an output_shape of several sizes; one size is supported");
  return sizes[0];
}

void refuse_other_axes(ConfigReader& reader) {
  const nlohmann::json* axes = reader.raw("attention_axes");
  if (axes == nullptr || axes->is_null() || *axes == 1 || *axes == nlohmann::json::array({1})) return;
  reader.refuse("has attention_axes = " + axes->dump() + "; only the sequence axis, 1, is supported");
}

}  // namespace

std::unique_ptr<Layer> make_multi_head_attention(LayerCommon common, const nlohmann::json& config) {
  ConfigReader reader(config, layer_label(common));
  AttentionOptions options;
  options.heads = reader.required<std::int64_t>("num_heads");
  options.key_dim = reader.required<std::int64_t>("key_dim");
  options.value_dim = reader.optional<std::int64_t>("value_dim").value_or(options.key_dim);
  options.output_dim = read_output_dim(reader);
  options.groups = options.heads;
  refuse_other_axes(reader);
  read_common(reader, options);
  reader.finish();
  expect_positive(common, "num_heads", options.heads);
  expect_positive(common, "key_dim", options.key_dim);
  expect_positive(common, "value_dim", options.value_dim);
  if (options.output_dim < 0) refuse_layer(common, "has a negative output_shape");
  return make_attention(std::move(common), std::move(options));
}

std::unique_ptr<Layer> make_group_query_attention(LayerCommon common, const nlohmann::json& config) {
  ConfigReader reader(config, layer_label(common));
  AttentionOptions options;
  options.heads = reader.required<std::int64_t>("num_query_heads");
  options.groups = reader.required<std::int64_t>("num_key_value_heads");
  options.key_dim = reader.required<std::int64_t>("head_dim");
  options.value_dim = options.key_dim;
  options.attribute_prefix = "_";
  read_common(reader, options);
  reader.finish();
  expect_positive(common, "head_dim", options.key_dim);
  expect_positive(common, "num_query_heads", options.heads);
  expect_positive(common, "num_key_value_heads", options.groups);
  if (options.heads % options.groups != 0)
    refuse_layer(common, "has " + std::to_string(options.heads) + " query heads, which " +
                             std::to_string(options.groups) + " key/value heads don't divide");
  return make_attention(std::move(common), std::move(options));
}

}  // namespace rankine
