#include "checkpoint/weights_file.hpp"

#include <algorithm>
#include <bit>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <limits>
#include <set>
#include <vector>

#include "checkpoint/keras_archive.hpp"
#include "checkpoint/sharded_index.hpp"
#include "runtime/error.hpp"
#include "runtime/hdf5/hdf5_file.hpp"

namespace rankine {
namespace {

namespace fs = std::filesystem;

constexpr int k_max_depth = 64;

bool is_digits(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

std::string_view take_component(std::string_view& path) {
  const std::size_t end = std::min(path.find('/'), path.size());
  const std::string_view component = path.substr(0, end);
  path.remove_prefix(std::min(end + 1, path.size()));
  return component;
}

/// TensorFlow 2.13's Keras wrote the layers of a model under another name.
std::string todays_name(const std::string& component) {
  return component == "_layer_checkpoint_dependencies" ? "layers" : component;
}

std::string join(const std::string& path, const std::string& name) {
  return path.empty() ? name : path + "/" + name;
}

template <class Action>
auto as_checkpoint_error(Action&& action) {
  try {
    return action();
  } catch (const hdf5::Hdf5Error& error) {
    throw CheckpointError(error.what());
  }
}

float from_bfloat16(std::uint16_t bits) {
  return std::bit_cast<float>(std::uint32_t{bits} << 16);
}

void read_bfloat16(const hdf5::Dataset& dataset, Tensor into) {
  std::vector<std::uint16_t> bits(static_cast<std::size_t>(into.elements()));
  hdf5::read_raw(dataset, std::as_writable_bytes(std::span(bits)));
  if (into.dtype == DType::float64)
    std::transform(bits.begin(), bits.end(), into.as<double>(), from_bfloat16);
  else
    std::transform(bits.begin(), bits.end(), into.as<float>(), from_bfloat16);
}

/// HDF5 would clamp an integer that doesn't fit. double holds every int32, and every count a run can reach.
void read_integers(const hdf5::Dataset& dataset, Tensor into, const std::string& what) {
  std::vector<double> values(static_cast<std::size_t>(into.elements()));
  hdf5::read_all(dataset, {values.data(), DType::float64, into.shape});
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::abs(values[i]) > std::numeric_limits<std::int32_t>::max())
      throw CheckpointError(what + " holds " + std::to_string(values[i]) + ", which doesn't fit int32");
    into.as<std::int32_t>()[i] = static_cast<std::int32_t>(values[i]);
  }
}

}  // namespace

bool StructuralLess::operator()(const std::string& a, const std::string& b) const {
  std::string_view left = a;
  std::string_view right = b;
  while (!left.empty() && !right.empty()) {
    const std::string_view l = take_component(left);
    const std::string_view r = take_component(right);
    if (l == r) continue;
    if (is_digits(l) && is_digits(r) && l.size() != r.size()) return l.size() < r.size();
    return l < r;
  }
  return left.empty() && !right.empty();
}

struct WeightsFile::State {
  struct Place {
    std::size_t file = 0;
    std::string path;  ///< as stored
  };

  std::string name;
  std::vector<hdf5::File> files;
  Arrays arrays;
  std::map<std::string, Place> groups;  ///< the `vars` group of each saved object
  std::map<std::string, Place> places;
  std::set<std::pair<std::size_t, haddr_t>> seen;

  void add_file(hdf5::File file) {
    files.push_back(std::move(file));
    if (hdf5::exists(files.back().get(), "model_weights") ||
        hdf5::string_attribute(files.back().get(), "model_config"))
      throw CheckpointError(
          hdf5::file_name(files.back().get()) +
          " is a whole model in the old .h5 form; save it with Keras 3 as .keras or .weights.h5");
    scan(hdf5::open_group(files.back().get(), "/"), "", "", 0);
  }

  void scan(const hdf5::Group& group, const std::string& stored, const std::string& path, int depth) {
    const std::string file = hdf5::file_name(group.get());
    if (depth > k_max_depth) throw CheckpointError(file + ": groups are nested too deeply at " + path);
    for (const hdf5::Entry& entry : hdf5::entries(group.get())) {
      const std::string place = join(stored, entry.name);
      const std::string canonical = join(path, todays_name(entry.name));
      // A link back to a group above would never end, and two paths to one array have no meaning in Keras's
      // files.
      if (!seen.insert({files.size(), entry.address}).second)
        throw CheckpointError(file + ": " + place + " is a second link to an object of the file");
      if (entry.kind == hdf5::Kind::dataset) add_array(place, canonical);
      if (entry.kind == hdf5::Kind::group) add_group(place, canonical, depth);
    }
  }

  void add_group(const std::string& stored, const std::string& path, int depth) {
    const hdf5::Group group = hdf5::open_group(files.back().get(), stored);
    const bool is_vars = path == "vars" || path.ends_with("/vars");
    if (is_vars) {
      const std::string owner = path.substr(0, path.size() - std::min<std::size_t>(path.size(), 5));
      const Place place{files.size() - 1, stored};
      // A shard that only continues a group doesn't repeat its name.
      if (hdf5::has_attribute(group.get(), "name"))
        groups.insert_or_assign(owner, place);
      else
        groups.emplace(owner, place);
    }
    scan(group, stored, path, depth + 1);
  }

  void add_array(const std::string& stored, const std::string& path) {
    const hdf5::Dataset dataset = hdf5::open_dataset(files.back().get(), stored);
    const hdf5::DatasetInfo info = hdf5::info_of(dataset);
    const std::size_t bytes = static_cast<std::size_t>(info.shape.elements()) * info.element_bytes;
    const std::string what = hdf5::file_name(dataset.get()) + ": " + stored;
    if (info.stored_bytes == 0 && bytes > 0)
      throw CheckpointError(what +
                            " was created but never written: the save wasn't finished; use another file");
    if (!arrays.emplace(path, StoredArray{info.shape, info.dtype, bytes}).second)
      throw CheckpointError(what + " is stored twice");
    places.emplace(path, Place{files.size() - 1, stored});
  }
};

WeightsFile::WeightsFile(std::unique_ptr<State> state) : state_(std::move(state)) {}
WeightsFile::WeightsFile(WeightsFile&&) noexcept = default;
WeightsFile& WeightsFile::operator=(WeightsFile&&) noexcept = default;
WeightsFile::~WeightsFile() = default;

WeightsFile WeightsFile::open(const std::string& path) {
  if (path.ends_with(".npz"))
    throw CheckpointError(path + ": weights in .npz aren't read; save them with Keras as .weights.h5");
  if (KerasArchive::looks_like(path)) return KerasArchive::open(path).weights();
  auto state = std::make_unique<State>();
  state->name = path;
  return as_checkpoint_error([&] {
    if (!path.ends_with(".json")) {
      state->add_file(hdf5::open_file(path));
      return WeightsFile(std::move(state));
    }
    const ShardedIndex index = read_sharded_index(path);
    for (const std::string& shard : index.shards)
      state->add_file(hdf5::open_file((fs::path(path).parent_path() / shard).string()));
    check_shards(index, path, state->arrays,
                 [&](const std::string& array) { return index.shards[state->places.at(array).file]; });
    return WeightsFile(std::move(state));
  });
}

WeightsFile WeightsFile::from_image(std::span<const std::byte> image, const std::string& label) {
  auto state = std::make_unique<State>();
  state->name = label;
  return as_checkpoint_error([&] {
    state->add_file(hdf5::open_image(image, label));
    return WeightsFile(std::move(state));
  });
}

const std::string& WeightsFile::name() const {
  return state_->name;
}
const WeightsFile::Arrays& WeightsFile::arrays() const {
  return state_->arrays;
}
std::vector<std::string> WeightsFile::groups() const {
  std::vector<std::string> paths;
  for (const auto& entry : state_->groups) paths.push_back(entry.first);
  return paths;
}

std::string WeightsFile::group_name(const std::string& group) const {
  const auto found = state_->groups.find(group);
  if (found == state_->groups.end()) return "";
  return as_checkpoint_error([&] {
    const auto vars = hdf5::open_group(state_->files[found->second.file].get(), found->second.path);
    return hdf5::string_attribute(vars.get(), "name").value_or("");
  });
}

void WeightsFile::read(const std::string& structural_path, Tensor into) const {
  const auto place = state_->places.find(structural_path);
  if (place == state_->places.end()) throw CheckpointError(name() + " has no array " + structural_path);
  const StoredArray& array = state_->arrays.at(structural_path);
  const std::string what = name() + ": " + structural_path;
  if (array.shape != into.shape)
    throw CheckpointError(what + " has shape " + array.shape.to_string() + ", wanted is " +
                          into.shape.to_string());
  const bool floating = array.dtype.starts_with("float") || array.dtype == "bfloat16";
  const bool integer = array.dtype.starts_with("int") || array.dtype.starts_with("uint");
  if (is_floating(into.dtype) ? !floating : !integer)
    throw CheckpointError(what + " is " + array.dtype + ", wanted is " + std::string(name_of(into.dtype)));
  as_checkpoint_error([&] {
    const auto dataset = hdf5::open_dataset(state_->files[place->second.file].get(), place->second.path);
    if (array.dtype == "bfloat16")
      read_bfloat16(dataset, into);
    else if (integer)
      read_integers(dataset, into, what);
    else
      hdf5::read_all(dataset, into);
  });
}

}  // namespace rankine
