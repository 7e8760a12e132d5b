// Operations that are layers under another name: their config as that layer's.

#include <nlohmann/json.hpp>

#include "runtime/model/config_reader.hpp"
#include "runtime/model/layers/affine.hpp"
#include "runtime/model/layers/checks.hpp"
#include "runtime/model/layers/kinds.hpp"
#include "runtime/model/layers/quotient.hpp"
#include "runtime/model/operation.hpp"

namespace rankine {

using nlohmann::json;

namespace {

/// A number among the arguments: plain, or an array of Keras or numpy without dimensions.
double number_of(const LayerCommon& common, const json& argument) {
  const json* value = &argument;
  if (argument.is_object() && argument.contains("config") && argument["config"].is_object() &&
      argument["config"].contains("value"))
    value = &argument["config"]["value"];
  if (!value->is_number())
    refuse_layer(common, "is called with " + value->dump().substr(0, 40) +
                             "; tensors of the model and single numbers are supported");
  return value->get<double>();
}

std::unique_ptr<Layer> with_number(LayerCommon common, bool number_first, double number) {
  const std::string& name = common.class_name;
  if (name == "Add") return make_affine(std::move(common), {.offset = number});
  if (name == "Subtract" && number_first) return make_affine(std::move(common), {-1.0, number});
  if (name == "Subtract") return make_affine(std::move(common), {.offset = -number});
  if (name == "Multiply") return make_affine(std::move(common), {.scale = number});
  if (name == "Divide" || name == "TrueDivide")
    return number_first ? make_quotient(std::move(common), number)
                        : make_affine(std::move(common), {.scale = 1.0 / number});
  refuse_layer(common, "takes a number; two tensors are supported");
}

}  // namespace

std::unique_ptr<Layer> make_arithmetic(LayerCommon common, const json& config) {
  const json& arguments = config["args"];
  if (common.class_name == "Negative") return make_affine(std::move(common), {.scale = -1.0});
  if (arguments.size() != 2) refuse_layer(common, "takes two arguments");
  const bool first = is_tensor_argument(arguments[0]), second = is_tensor_argument(arguments[1]);
  if (!first) return with_number(common, true, number_of(common, arguments[0]));
  if (!second) return with_number(common, false, number_of(common, arguments[1]));
  const std::string& name = common.class_name;
  if (name == "Maximum" || name == "Minimum") return make_extremum(std::move(common), json::object());
  if (name == "Divide" || name == "TrueDivide")
    refuse_layer(
        common,
        "divides a tensor by a tensor; a tensor by a number, and a number by a tensor, are supported");
  return make_merge(std::move(common), json::object());
}

std::unique_ptr<Layer> make_reshape_operation(LayerCommon common, const json& config) {
  ConfigReader reader(config, layer_label(common));
  auto shape = reader.required<std::vector<std::int64_t>>("newshape");
  if (shape.empty() || shape[0] != -1)
    reader.refuse("has newshape " + Shape(shape).to_string() +
                  "; its first size must be -1, the batch's, and the others those of a sample");
  shape.erase(shape.begin());
  return make_reshape(std::move(common), {{"target_shape", shape}});
}

std::unique_ptr<Layer> make_softmax_operation(LayerCommon common, const json& config) {
  const json axis = config.value("axis", json(-1));
  if (axis.is_null()) refuse_layer(common, "has axis = null; softmax over one axis is supported");
  return make_softmax(std::move(common), {{"axis", axis}});
}

std::unique_ptr<Layer> make_transpose_operation(LayerCommon common, const json& config) {
  ConfigReader reader(config, layer_label(common));
  const json* axes = reader.raw("axes");
  if (axes == nullptr || axes->is_null())
    reader.refuse("has no axes, which moves the batch to the end; the batch must stay first");
  auto dims = reader.required<std::vector<std::int64_t>>("axes");
  const auto rank = static_cast<std::int64_t>(dims.size());
  for (std::int64_t& axis : dims)
    if (axis < 0) axis += rank;
  if (dims.empty() || dims[0] != 0)
    reader.refuse("has axes " + Shape(dims).to_string() + "; the first must be 0, the batch's");
  dims.erase(dims.begin());
  return make_permute(std::move(common), {{"dims", dims}});
}

}  // namespace rankine
