#include "runtime/data/window_dataset.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>

#include "runtime/data/input_file.hpp"
#include "runtime/error.hpp"

namespace rankine {
namespace {

constexpr std::int32_t k_no_id = -1;
using CharacterIds = std::array<std::int32_t, 256>;

std::string names_of(const std::vector<Field>& fields) {
  std::string names;
  for (const Field& field : fields) names += (names.empty() ? "'" : ", '") + field.name + "'";
  return names.empty() ? "none" : names;
}

/// What a language model's request comes down to.
struct WindowFields {
  std::size_t ids = 0;      ///< place of the id input; all others are positions
  std::int64_t length = 0;  ///< ids a window
};

WindowFields window_fields(const DataRequest& request, const WindowOptions& options) {
  const auto is_position = [&](const Field& field) {
    return std::find(options.positions.begin(), options.positions.end(), field.name) !=
           options.positions.end();
  };
  for (const std::string& name : options.positions) {
    const bool known = std::any_of(request.inputs.begin(), request.inputs.end(),
                                   [&](const Field& field) { return field.name == name; });
    if (!known) {
      throw ConfigError("the model has no input '" + name + "' to fill with \"arange\"; its inputs are " +
                        names_of(request.inputs));
    }
  }
  const auto id_inputs = std::count_if(request.inputs.begin(), request.inputs.end(),
                                       [&](const Field& field) { return !is_position(field); });
  if (id_inputs != 1) {
    throw ConfigError("text and tokens feed one input of a model, and " + std::to_string(id_inputs) + " of " +
                      names_of(request.inputs) +
                      " are left to feed: name the inputs that count positions in the job file, as "
                      "[inputs] positions = \"arange\"");
  }
  const auto ids = std::find_if_not(request.inputs.begin(), request.inputs.end(), is_position);
  for (const Field& field : request.inputs) {
    if (field.spec.shape.rank() != 1 || field.spec.shape[0] < 1) {
      throw ConfigError("text and tokens are rows of ids, but the model's input '" + field.name +
                        "' has samples of shape " + field.spec.shape.to_string());
    }
  }
  const std::int64_t length = ids->spec.shape[0];
  if (request.targets.size() != 1) {
    throw ConfigError("text and tokens give one target, the next id of each, but the model has the outputs " +
                      names_of(request.targets));
  }
  const ValueSpec& target = request.targets[0].spec;
  if (target.dtype != DType::int32 || target.shape.elements() != length) {
    throw ConfigError("text and tokens give targets of shape " + Shape{length}.to_string() +
                      " and dtype int32 (use sparse_categorical_crossentropy), but the loss of '" +
                      request.targets[0].name + "' wants " + target.shape.to_string() + " " +
                      std::string(name_of(target.dtype)));
  }
  return {static_cast<std::size_t>(ids - request.inputs.begin()), length};
}

/// Puts ids into a row of any dtype that a model's input may have.
void store_ids(std::span<const std::int32_t> ids, Tensor row) {
  switch (row.dtype) {
    case DType::int32:
      std::copy(ids.begin(), ids.end(), row.as<std::int32_t>());
      break;
    case DType::float32:
      std::transform(ids.begin(), ids.end(), row.as<float>(),
                     [](std::int32_t id) { return static_cast<float>(id); });
      break;
    case DType::float64:
      std::copy(ids.begin(), ids.end(), row.as<double>());
      break;
  }
}

class WindowDataset final : public Dataset {
 public:
  /// With `characters` the file's bytes are looked up there; without, they are little-endian numbers.
  WindowDataset(const std::string& path, int bytes_per_id, std::optional<CharacterIds> characters,
                const DataRequest& request, const WindowOptions& options)
      : file_(path),
        bytes_per_id_(bytes_per_id),
        characters_(characters),
        request_(request),
        fields_(window_fields(request, options)) {
    if (file_.size() % bytes_per_id_ != 0) {
      throw DataError("'" + path + "' has " + std::to_string(file_.size()) +
                      " bytes, which isn't a multiple of " + std::to_string(bytes_per_id_) +
                      " bytes a token: check --token-bytes");
    }
    const std::int64_t ids = file_.size() / bytes_per_id_;
    samples_ = ids > 0 ? (ids - 1) / fields_.length : 0;
    if (samples_ < 1) {
      throw DataError("'" + path + "' holds " + std::to_string(ids) +
                      (characters_ ? " characters" : " tokens") +
                      ", too few for one sample: the model's input '" + request_.inputs[fields_.ids].name +
                      "' takes " + std::to_string(fields_.length) + ", and the target one more");
    }
    bytes_.resize(static_cast<std::size_t>((fields_.length + 1) * bytes_per_id_));
    ids_.resize(static_cast<std::size_t>(fields_.length + 1));
  }

  std::int64_t samples() const override { return samples_; }
  const std::vector<Field>& inputs() const override { return request_.inputs; }
  const std::vector<Field>& targets() const override { return request_.targets; }
  std::int64_t bytes_read() const override { return bytes_read_; }

  std::string description() const override {
    return "'" + file_.path() + "': " + std::to_string(samples_) + " windows of " +
           std::to_string(fields_.length) + (characters_ ? " characters" : " tokens");
  }

  void read(std::span<const std::int64_t> indices, std::span<const Tensor> into) override {
    assert(into.size() == request_.inputs.size() + 1);
    for (std::size_t i = 0; i < indices.size(); ++i) {
      read_window(indices[i]);
      const auto row = [&](const Tensor& tensor) {
        const auto at = static_cast<std::int64_t>(i);
        return tensor.rows(at, at + 1);
      };
      const std::span<const std::int32_t> ids(ids_);
      for (std::size_t input = 0; input < request_.inputs.size(); ++input) {
        if (input == fields_.ids) {
          store_ids(ids.first(ids.size() - 1), row(into[input]));
        } else {
          std::vector<std::int32_t> positions(
              static_cast<std::size_t>(request_.inputs[input].spec.shape.elements()));
          std::iota(positions.begin(), positions.end(), 0);
          store_ids(positions, row(into[input]));
        }
      }
      store_ids(ids.subspan(1), row(into[request_.inputs.size()]));
    }
  }

 private:
  /// Window `sample` and the id after it, into ids_.
  void read_window(std::int64_t sample) {
    assert(sample >= 0 && sample < samples_);
    const std::int64_t first = sample * fields_.length;
    file_.read(first * bytes_per_id_, bytes_);
    bytes_read_ += static_cast<std::int64_t>(bytes_.size());
    for (std::size_t i = 0; i < ids_.size(); ++i) {
      ids_[i] = decode(i);
      if (ids_[i] == k_no_id) refuse(sample, first + static_cast<std::int64_t>(i), i);
    }
  }

  std::uint32_t number(std::size_t i) const {
    std::uint32_t value = 0;
    const auto width = static_cast<std::size_t>(bytes_per_id_);
    for (std::size_t byte = 0; byte < width; ++byte) {
      value |= std::to_integer<std::uint32_t>(bytes_[i * width + byte]) << (8 * byte);
    }
    return value;
  }

  std::int32_t decode(std::size_t i) const {
    const std::uint32_t value = number(i);
    if (characters_) return (*characters_)[value];
    // The model takes int32; in a float32 input ids beyond 2^24 would be rounded to a neighbour.
    const bool narrow = request_.inputs[fields_.ids].spec.dtype == DType::float32;
    const std::uint32_t most = narrow ? 1U << 24 : std::uint32_t{std::numeric_limits<std::int32_t>::max()};
    return value <= most ? static_cast<std::int32_t>(value) : k_no_id;
  }

  [[noreturn]] void refuse(std::int64_t sample, std::int64_t place, std::size_t i) const {
    const std::string where = "'" + file_.path() + "', sample " + std::to_string(sample) + ": ";
    if (characters_) {
      throw DataError(where + "the byte " + std::to_string(number(i)) + " at position " +
                      std::to_string(place) + " isn't in the vocabulary of the training text");
    }
    throw DataError(where + "the token " + std::to_string(number(i)) + " at position " +
                    std::to_string(place) + " doesn't fit the model's input of dtype " +
                    std::string(name_of(request_.inputs[fields_.ids].spec.dtype)) + ": check --token-bytes");
  }

  InputFile file_;
  int bytes_per_id_;
  std::optional<CharacterIds> characters_;
  DataRequest request_;
  WindowFields fields_;
  std::int64_t samples_ = 0;
  std::int64_t bytes_read_ = 0;
  std::vector<std::byte> bytes_;
  std::vector<std::int32_t> ids_;
};

}  // namespace

std::string text_vocabulary(const std::string& path) {
  const InputFile file(path);
  std::array<bool, 256> present{};
  std::vector<std::byte> part(std::size_t{1} << 20);
  for (std::int64_t at = 0; at < file.size(); at += static_cast<std::int64_t>(part.size())) {
    const std::span<std::byte> bytes(
        part.data(), static_cast<std::size_t>(std::min<std::int64_t>(std::ssize(part), file.size() - at)));
    file.read(at, bytes);
    for (const std::byte byte : bytes) present[std::to_integer<std::size_t>(byte)] = true;
  }
  std::string vocabulary;
  for (std::size_t byte = 0; byte < present.size(); ++byte) {
    if (present[byte]) vocabulary.push_back(static_cast<char>(byte));
  }
  return vocabulary;
}

std::unique_ptr<Dataset> open_text_dataset(const std::string& path, const std::string& vocabulary,
                                           const DataRequest& request, const WindowOptions& options) {
  CharacterIds ids;
  ids.fill(k_no_id);
  for (std::size_t id = 0; id < vocabulary.size(); ++id) {
    ids[static_cast<unsigned char>(vocabulary[id])] = static_cast<std::int32_t>(id);
  }
  return std::make_unique<WindowDataset>(path, 1, ids, request, options);
}

std::unique_ptr<Dataset> open_token_dataset(const std::string& path, int bytes_per_token,
                                            const DataRequest& request, const WindowOptions& options) {
  if (bytes_per_token != 2 && bytes_per_token != 4) {
    throw ConfigError("a token has 2 or 4 bytes, not " + std::to_string(bytes_per_token));
  }
  return std::make_unique<WindowDataset>(path, bytes_per_token, std::nullopt, request, options);
}

}  // namespace rankine
