#include <algorithm>
#include <nlohmann/json.hpp>

#include "runtime/model/layers/checks.hpp"
#include "runtime/model/layers/kinds.hpp"
#include "runtime/model/layers/rows.hpp"

namespace rankine {

using nlohmann::json;

namespace {

bool is_special(const json& key, const char* class_name) {
  return key.is_object() && key.contains("class_name") && key["class_name"] == class_name;
}

/// `x[:, i]`, `x[:, a:b:c]`, `x[..., i]`, `x[:, None]`: a block of a tensor. The batch is always whole.
class GetItem final : public Layer {
 public:
  GetItem(LayerCommon layer_common, const json& config) : Layer(std::move(layer_common)) {
    const json& arguments = config["args"];
    if (arguments.size() != 2) refuse_layer(common(), "takes a tensor and what to take of it");
    keys_ = arguments[1].is_array() ? arguments[1] : json::array({arguments[1]});
  }

  ValueSpec output(std::span<const ValueSpec> inputs) const override {
    const ValueSpec& x = one_floating_input(common(), inputs);
    return {block_of(x.shape).shape, x.dtype};
  }
  CallPlan plan(std::span<const ValueSpec>, const CallArguments&) const override {
    CallPlan plan;
    plan.backward_reads_inputs = false;
    return plan;
  }
  void forward(const CallContext& call) const override {
    const Tensor& x = call.inputs[0];
    copy(call, block_of(sample_shape(x)), x, call.output, Direction::take);
  }
  void backward(const CallContext& call) const override {
    const Tensor& dx = call.input_gradients[0];
    if (!dx) return;
    call.backend.fill(dx, 0.0);
    copy(call, block_of(sample_shape(dx)), dx, call.output_gradient, Direction::put);
  }

 private:
  enum class Direction : std::uint8_t { take, put };
  /// What is taken of one dimension of size `size`: `count` places from `begin` on, `step` apart.
  struct Cut {
    std::int64_t size = 1, begin = 0, count = 1, step = 1;
    bool is_whole() const { return count == size && step == 1; }
  };
  struct Block {
    std::vector<Cut> cuts;  ///< one a dimension of a sample
    Shape shape;            ///< of the result's sample
  };

  /// Dimensions that the keys name; the ellipsis stands for the others.
  int named_dimensions() const {
    int named = 0;
    for (const json& key : keys_) named += key.is_null() || is_special(key, "__ellipsis__") ? 0 : 1;
    return named;
  }

  Block block_of(const Shape& sample) const {
    const int rank = sample.rank() + 1;
    const int others = rank - named_dimensions();
    if (others < 0) refuse_layer(common(), "takes more dimensions than its input has");
    Block block;
    std::vector<std::int64_t> shape;
    int at = 0;
    const auto all = [&](int dimensions) {
      for (int i = 0; i < dimensions; ++i, ++at) {
        if (at == 0) continue;
        block.cuts.push_back({sample[at - 1], 0, sample[at - 1]});
        shape.push_back(sample[at - 1]);
      }
    };
    bool ellipsis = false;
    for (const json& key : keys_) {
      if (is_special(key, "__ellipsis__")) {
        if (ellipsis) refuse_layer(common(), "has two ellipses");
        ellipsis = true;
        all(others);
      } else if (key.is_null()) {
        if (at == 0) refuse_layer(common(), "puts a new dimension in front of the batch");
        shape.push_back(1);
      } else if (at == 0) {
        expect_whole_batch(key);
        ++at;
      } else {
        block.cuts.push_back(cut_of(key, sample[at - 1]));
        if (!key.is_number_integer()) shape.push_back(block.cuts.back().count);
        ++at;
      }
    }
    all(rank - at);
    block.shape = Shape(std::move(shape));
    return block;
  }

  void expect_whole_batch(const json& key) const {
    if (is_special(key, "__slice__") && key.contains("config") && key["config"].is_object() &&
        std::all_of(key["config"].begin(), key["config"].end(), [](const json& v) { return v.is_null(); }))
      return;
    refuse_layer(common(), "takes a part of the batch; its first index must be the slice ':' or '...'");
  }

  Cut cut_of(const json& key, std::int64_t size) const {
    if (key.is_number_integer()) {
      const auto given = key.get<std::int64_t>();
      const std::int64_t index = given < 0 ? given + size : given;
      if (index < 0 || index >= size)
        refuse_layer(common(), "takes index " + std::to_string(given) + " of a dimension of size " +
                                   std::to_string(size));
      return {size, index, 1};
    }
    if (!is_special(key, "__slice__") || !key.contains("config") || !key["config"].is_object())
      refuse_layer(common(),
                   "takes " + key.dump().substr(0, 40) + "; integers, slices, None and '...' are supported");
    const json& slice = key["config"];
    const auto number = [&](const char* name, std::int64_t otherwise) {
      const json value = slice.value(name, json());
      if (value.is_null()) return otherwise;
      if (!value.is_number_integer())
        refuse_layer(common(), std::string("has a slice whose ") + name + " is " +
                                   value.dump().substr(0, 40) + "; it must be an integer");
      return value.get<std::int64_t>();
    };
    const std::int64_t step = number("step", 1);
    if (step == 0) refuse_layer(common(), "has a slice with a step of 0");
    // Python's bounds; backwards, the place before the first is -1.
    const std::int64_t least = step > 0 ? 0 : -1, most = step > 0 ? size : size - 1;
    const auto bound = [&](const char* name, std::int64_t otherwise) {
      if (slice.value(name, json()).is_null()) return otherwise;
      const std::int64_t given = number(name, 0);
      return std::clamp(given < 0 ? given + size : given, least, most);
    };
    const std::int64_t begin = bound("start", step > 0 ? least : most);
    const std::int64_t end = bound("stop", step > 0 ? most : least);
    const std::int64_t distance = step > 0 ? end - begin : begin - end;
    if (distance <= 0) refuse_layer(common(), "has a slice that takes nothing");
    const std::int64_t stride = step > 0 ? step : -std::max(step, -size);
    return {size, begin, (distance + stride - 1) / stride, step > 0 ? stride : -stride};
  }

  /// Copies the block: one block copy for each index of the cut dimensions but the last.
  static void copy(const CallContext& call, const Block& block, const Tensor& whole, const Tensor& part,
                   Direction direction) {
    std::vector<Cut> cuts = block.cuts;
    std::int64_t inner = 1;
    while (!cuts.empty() && cuts.back().is_whole()) {
      inner *= cuts.back().size;
      cuts.pop_back();
    }
    cuts.insert(cuts.begin(), {call.samples, 0, call.samples});
    copy_level(call.backend, cuts, inner, {whole, 0}, {part, 0}, direction);
  }

  struct Place {
    const Tensor& tensor;
    std::int64_t at;
  };
  /// `cuts` from the outermost on: whole dimensions, then one that is cut, and so on. `inner` elements lie
  /// inside.
  static void copy_level(Backend& backend, std::span<const Cut> cuts, std::int64_t inner, Place whole,
                         Place part, Direction direction) {
    std::size_t next = 0;
    std::int64_t outer = 1;
    while (next < cuts.size() && cuts[next].is_whole()) outer *= cuts[next++].size;
    if (next == cuts.size()) return copy_rows(backend, 1, outer * inner, whole, 0, part, 0, direction);
    const Cut cut = cuts[next];
    const auto rest = cuts.subspan(next + 1);
    std::int64_t whole_row = inner, part_row = inner;
    for (const Cut& c : rest) whole_row *= c.size, part_row *= c.count;
    whole.at += cut.begin * whole_row;
    if (cut.step != 1 && rest.empty()) return copy_apart(backend, outer, cut, inner, whole, part, direction);
    if (rest.empty())
      return copy_rows(backend, outer, cut.count * inner, whole, cut.size * inner, part, cut.count * inner,
                       direction);
    for (std::int64_t o = 0; o < outer; ++o)
      for (std::int64_t i = 0; i < cut.count; ++i)
        copy_level(backend, rest, inner, {whole.tensor, whole.at + (o * cut.size + i * cut.step) * whole_row},
                   {part.tensor, part.at + (o * cut.count + i) * part_row}, direction);
  }
  /// Places of the innermost cut that aren't neighbours: the longer loop goes into the backend.
  static void copy_apart(Backend& backend, std::int64_t outer, const Cut& cut, std::int64_t inner,
                         Place whole, Place part, Direction direction) {
    const std::int64_t whole_row = cut.size * inner, part_row = cut.count * inner;
    if (outer > cut.count) {
      for (std::int64_t i = 0; i < cut.count; ++i)
        copy_rows(backend, outer, inner, {whole.tensor, whole.at + i * cut.step * inner}, whole_row,
                  {part.tensor, part.at + i * inner}, part_row, direction);
      return;
    }
    // What is written goes forwards.
    const bool turned = cut.step < 0 && direction == Direction::put;
    const std::int64_t last = turned ? cut.count - 1 : 0, sign = turned ? -1 : 1;
    for (std::int64_t o = 0; o < outer; ++o)
      copy_rows(backend, cut.count, inner, {whole.tensor, whole.at + o * whole_row + last * cut.step * inner},
                sign * cut.step * inner, {part.tensor, part.at + o * part_row + last * inner}, sign * inner,
                direction);
  }
  static void copy_rows(Backend& backend, std::int64_t rows, std::int64_t columns, Place whole,
                        std::int64_t whole_row, Place part, std::int64_t part_row, Direction direction) {
    void* in_whole = element(whole.tensor, whole.at);
    void* in_part = element(part.tensor, part.at);
    if (direction == Direction::take)
      backend.copy_block(part.tensor.dtype, rows, columns, in_whole, whole_row, in_part, part_row);
    else
      backend.copy_block(part.tensor.dtype, rows, columns, in_part, part_row, in_whole, whole_row);
  }

  json keys_;
};

}  // namespace

std::unique_ptr<Layer> make_get_item(LayerCommon common, const json& config) {
  return std::make_unique<GetItem>(std::move(common), config);
}

}  // namespace rankine
