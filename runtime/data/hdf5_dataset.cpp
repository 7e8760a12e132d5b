#include "runtime/data/hdf5_dataset.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>

#include "runtime/error.hpp"
#include "runtime/hdf5/hdf5_file.hpp"

namespace rankine {
namespace {

/// Longest run of samples that goes through memory of our own at a time.
constexpr std::int64_t k_run_bytes = std::int64_t{8} << 20;
/// Chunks of a chunked array that HDF5 keeps uncompressed; it always keeps one.
constexpr std::size_t k_chunk_cache_bytes = std::size_t{64} << 20;
constexpr std::size_t k_chunk_cache_slots = 12421;  // a prime, as HDF5's manual asks for

/// How the stored numbers become the model's.
enum class Conversion : std::uint8_t {
  exact,         ///< by HDF5, which keeps every value
  from_double,   ///< float64 to float32: rounded, as long as finite values stay finite
  from_integer,  ///< checked one by one
};

struct Array {
  Field field;
  std::string path;  ///< "/inputs/tokens"
  hdf5::Dataset dataset;
  Shape shape;  ///< as stored, samples first
  std::string dtype;
  std::size_t element_bytes = 0;
  Conversion conversion = Conversion::exact;
  std::int64_t sample_elements() const { return shape.product(1, shape.rank()); }
  std::int64_t sample_bytes() const { return sample_elements() * static_cast<std::int64_t>(element_bytes); }
};

/// A run of samples that follow each other in the file, and the rows where they are wanted.
struct Run {
  std::int64_t first = 0;
  std::span<const std::size_t> rows;
};

/// Equal but for a trailing 1, which Keras adds or drops as needed.
bool same_sample(Shape stored, Shape wanted) {
  const auto without_trailing_one = [](const Shape& shape) {
    std::vector<std::int64_t> sizes = shape.sizes();
    if (!sizes.empty() && sizes.back() == 1) sizes.pop_back();
    return sizes;
  };
  return without_trailing_one(stored) == without_trailing_one(wanted);
}

Shape sample_of(const Shape& shape) {
  return Shape(std::vector<std::int64_t>(shape.sizes().begin() + 1, shape.sizes().end()));
}

std::optional<Conversion> conversion_between(const std::string& stored, DType wanted) {
  const auto is = [&](std::initializer_list<const char*> names) {
    return std::find(names.begin(), names.end(), stored) != names.end();
  };
  const bool stored_float = is({"float16", "float32", "float64"});
  if (wanted == DType::float32 && stored == "float64") return Conversion::from_double;
  if (is_floating(wanted) && stored_float) return Conversion::exact;
  if (stored_float) return std::nullopt;
  if (is({"bool", "int8", "uint8", "int16", "uint16"})) return Conversion::exact;
  if (stored == "int32" && wanted != DType::float32) return Conversion::exact;
  if (is({"int32", "uint32", "int64", "uint64"})) return Conversion::from_integer;
  return std::nullopt;
}

/// What the file holds, for messages: "/inputs/x (64, 5) float32".
std::string list_arrays(hid_t file) {
  std::string list;
  const auto add = [&](hid_t parent, const std::string& folder, const std::string& name) {
    const hdf5::DatasetInfo info = hdf5::info_of(hdf5::open_dataset(parent, name));
    list += (list.empty() ? "" : ", ") + folder + name + " " + info.shape.to_string() + " " + info.dtype;
  };
  for (const hdf5::Entry& top : hdf5::entries(file)) {
    if (top.kind == hdf5::Kind::dataset) add(file, "/", top.name);
    if (top.kind != hdf5::Kind::group) continue;
    const hdf5::Group group = hdf5::open_group(file, top.name);
    for (const hdf5::Entry& entry : hdf5::entries(group.get())) {
      if (entry.kind == hdf5::Kind::dataset) add(group.get(), "/" + top.name + "/", entry.name);
    }
  }
  return list.empty() ? "no arrays" : list;
}

/// Opens again with a cache that suits the chunks: a shuffled read comes back to each chunk many times.
hdf5::Dataset open_for_samples(hid_t file, const std::string& path, const Shape& shape,
                               std::size_t element_bytes) {
  std::size_t cache = 0;
  {
    const hdf5::Dataset dataset = hdf5::open_dataset(file, path);
    const hdf5::PropertyList creation(hdf5::checked(H5Dget_create_plist(dataset.get()), path));
    for (int i = 0; i < H5Pget_nfilters(creation.get()); ++i) {
      std::array<char, 64> name{};
      std::size_t values = 0;
      unsigned flags = 0;
      const H5Z_filter_t filter = H5Pget_filter2(creation.get(), static_cast<unsigned>(i), &flags, &values,
                                                 nullptr, name.size(), name.data(), nullptr);
      if (filter >= 0 && H5Zfilter_avail(filter) > 0) continue;
      throw DataError(hdf5::file_name(file) + ": " + path + " is compressed with '" + name.data() +
                      "' (filter " + std::to_string(filter) +
                      "), which this HDF5 can't undo: save it with gzip or as it is");
    }
    if (H5Pget_layout(creation.get()) == H5D_CHUNKED) {
      cache = std::min(static_cast<std::size_t>(shape.elements()) * element_bytes, k_chunk_cache_bytes);
    }
  }
  const hdf5::PropertyList access(hdf5::checked(H5Pcreate(H5P_DATASET_ACCESS), path));
  if (cache > 0) {
    hdf5::checked(H5Pset_chunk_cache(access.get(), k_chunk_cache_slots, cache, H5D_CHUNK_CACHE_W0_DEFAULT),
                  path);
  }
  return hdf5::Dataset(hdf5::checked(H5Dopen2(file, path.c_str(), access.get()), path));
}

class Hdf5Dataset final : public Dataset {
 public:
  Hdf5Dataset(const std::string& path, const DataRequest& request)
      : path_(path), request_(request), file_(hdf5::open_file(path)) {
    const hdf5::Lock lock;
    open_group("inputs", request_.inputs, "x");
    if (!request_.targets.empty()) open_group("targets", request_.targets, "y");
    open_weights();
    samples_ = arrays_.front().shape[0];
    for (const Array& array : arrays_) {
      if (array.shape[0] != samples_) {
        throw DataError("'" + path_ + "': " + array.path + " has " + std::to_string(array.shape[0]) +
                        " samples " + array.shape.to_string() + ", but " + arrays_.front().path + " has " +
                        std::to_string(samples_) + " " + arrays_.front().shape.to_string());
      }
    }
    if (samples_ == 0) throw DataError("'" + path_ + "' holds no samples: the first axis of its arrays is 0");
  }

  std::int64_t samples() const override { return samples_; }
  const std::vector<Field>& inputs() const override { return request_.inputs; }
  const std::vector<Field>& targets() const override { return request_.targets; }
  const std::vector<Field>& weights() const override { return request_.weights; }
  std::int64_t bytes_read() const override { return bytes_read_; }

  std::string description() const override {
    std::string text = "'" + path_ + "': " + std::to_string(samples_) + " samples";
    for (const Array& array : arrays_) {
      text += ", " + array.path + " " + array.shape.to_string() + " " + array.dtype;
    }
    for (const std::string& name : unused_) text += ", " + name + " isn't used";
    return text;
  }

  void read(std::span<const std::int64_t> indices, std::span<const Tensor> into) override {
    assert(into.size() == arrays_.size());
    rows_.resize(indices.size());
    std::iota(rows_.begin(), rows_.end(), std::size_t{0});
    std::sort(rows_.begin(), rows_.end(), [&](std::size_t a, std::size_t b) {
      return indices[a] != indices[b] ? indices[a] < indices[b] : a < b;
    });
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
      const std::int64_t longest = std::max<std::int64_t>(
          1, k_run_bytes / std::max<std::int64_t>(1, arrays_[i].sample_elements() * 8));
      for (std::size_t begin = 0; begin < rows_.size();) {
        const std::int64_t first = indices[rows_[begin]];
        std::size_t end = begin + 1;
        while (end < rows_.size() && static_cast<std::int64_t>(end - begin) < longest &&
               indices[rows_[end]] == first + static_cast<std::int64_t>(end - begin)) {
          ++end;
        }
        read_run(arrays_[i], {first, std::span(rows_).subspan(begin, end - begin)}, into[i]);
        begin = end;
      }
    }
  }

 private:
  void open_group(const std::string& name, const std::vector<Field>& fields, const std::string& only_name) {
    if (!hdf5::exists(file_.get(), name)) {
      throw DataError("'" + path_ + "' has no group /" + name + "; it has " + list_arrays(file_.get()));
    }
    std::vector<std::string> present;
    for (const hdf5::Entry& entry : hdf5::entries(hdf5::open_group(file_.get(), name).get())) {
      present.push_back(entry.name);
    }
    const auto has = [&](const std::string& wanted) {
      return std::find(present.begin(), present.end(), wanted) != present.end();
    };
    std::string missing;
    for (const Field& field : fields) {
      std::string stored = field.name;
      if (!has(stored)) stored = field.also;
      if (!has(stored) && fields.size() == 1) stored = only_name;
      if (has(stored)) {
        open_array(field, "/" + name + "/" + stored);
        std::erase(present, stored);
      } else {
        missing += (missing.empty() ? "/" : ", /") + name + "/" + field.name;
      }
    }
    if (!missing.empty()) {
      throw DataError("'" + path_ + "' lacks " + missing + ", which the model needs; it has " +
                      list_arrays(file_.get()));
    }
    for (const std::string& left : present) unused_.push_back("/" + name + "/" + left);
  }

  /// /sample_weights is an array for all outputs, or a group with one an output. Without it, request_ has
  /// none.
  void open_weights() {
    const std::string name = "sample_weights";
    if (!hdf5::exists(file_.get(), name)) {
      request_.weights.clear();
    } else if (request_.weights.empty()) {
      unused_.push_back("/" + name);
    } else if (kind_of(name) == hdf5::Kind::group) {
      for (Field& field : request_.weights)
        field.spec.shape = weights_shape(field, find_weights(name, field));
      open_group(name, request_.weights, "y");
    } else {
      for (Field& field : request_.weights) {
        field.spec.shape = weights_shape(field, "/" + name);
        open_array(field, "/" + name);
      }
    }
  }

  hdf5::Kind kind_of(const std::string& name) const {
    for (const hdf5::Entry& entry : hdf5::entries(file_.get()))
      if (entry.name == name) return entry.kind;
    return hdf5::Kind::other;
  }

  /// The path of an output's weights; its own name if there are none, for open_group to miss.
  std::string find_weights(const std::string& group, const Field& field) const {
    for (const std::string& name :
         {field.name, field.also, std::string(request_.weights.size() == 1 ? "y" : "")}) {
      const std::string path = "/" + group + "/" + name;
      if (!name.empty() && hdf5::exists(file_.get(), path)) return path;
    }
    return "/" + group + "/" + field.name;
  }

  /// The shape of one sample's weights as stored, without a trailing 1 more than the loss has. Keras lines up
  /// weights with the loss from the first axis on only if both have as many.
  Shape weights_shape(const Field& field, const std::string& path) const {
    const std::vector<std::int64_t>& entries = field.spec.shape.sizes();
    if (!hdf5::exists(file_.get(), path)) return field.spec.shape;
    const Shape stored = hdf5::info_of(hdf5::open_dataset(file_.get(), path)).shape;
    if (stored.rank() == 0) return field.spec.shape;
    std::vector<std::int64_t> sample = sample_of(stored).sizes();
    if (sample.size() == entries.size() + 1 && sample.back() == 1) sample.pop_back();
    if (sample.empty() && entries == std::vector<std::int64_t>{1}) sample = entries;
    const std::vector<std::int64_t> each(entries.size(), 1);
    if (sample == entries || sample == each) return Shape(sample);
    throw DataError("'" + path_ + "': " + path + " is " + stored.to_string() + ", but the loss of '" +
                    field.name + "' has entries of shape " + field.spec.shape.to_string() +
                    " a sample: its weights must be (samples, …) with that shape, or with " +
                    Shape(each).to_string() + " for one weight a sample");
  }

  void open_array(const Field& field, const std::string& path) {
    const hdf5::DatasetInfo info = hdf5::info_of(hdf5::open_dataset(file_.get(), path));
    const std::string what = "'" + path_ + "': " + path + " is " + info.shape.to_string() + " " + info.dtype;
    const std::string wanted = "the model's '" + field.name + "' takes samples of shape " +
                               field.spec.shape.to_string() + " " + std::string(name_of(field.spec.dtype));
    if (info.shape.rank() == 0) throw DataError(what + ", but its first axis must be the samples");
    if (!same_sample(sample_of(info.shape), field.spec.shape)) {
      throw DataError(what + ", samples of shape " + sample_of(info.shape).to_string() + ", but " + wanted);
    }
    const std::optional<Conversion> conversion = conversion_between(info.dtype, field.spec.dtype);
    if (!conversion) {
      throw DataError(what + ", but " + wanted + ", and " + info.dtype +
                      " doesn't convert to it without loss");
    }
    arrays_.push_back({field, path, open_for_samples(file_.get(), path, info.shape, info.element_bytes),
                       info.shape, info.dtype, info.element_bytes, *conversion});
  }

  void read_run(const Array& array, const Run& run, const Tensor& into) {
    const auto count = std::ssize(run.rows);
    bytes_read_ += count * array.sample_bytes();
    if (array.conversion != Conversion::exact) {
      convert_run(array, run, into);
      return;
    }
    const auto row = static_cast<std::int64_t>(run.rows.front());
    bool in_order = true;
    for (std::size_t i = 0; i < run.rows.size(); ++i) in_order = in_order && run.rows[i] == run.rows[0] + i;
    if (in_order) {
      read_stored(array, run, hdf5::memory_type(into.dtype), into.rows(row, row + count).data);
      return;
    }
    const auto row_bytes = static_cast<std::size_t>(array.sample_elements()) * size_of(into.dtype);
    scratch_.resize(row_bytes * run.rows.size());
    read_stored(array, run, hdf5::memory_type(into.dtype), scratch_.data());
    for (std::size_t i = 0; i < run.rows.size(); ++i) {
      std::memcpy(static_cast<std::byte*>(into.data) + run.rows[i] * row_bytes,
                  scratch_.data() + i * row_bytes, row_bytes);
    }
  }

  void convert_run(const Array& array, const Run& run, const Tensor& into) {
    const auto elements = static_cast<std::size_t>(array.sample_elements());
    scratch_.resize(elements * run.rows.size() * 8);
    const bool doubles = array.conversion == Conversion::from_double;
    read_stored(array, run, doubles ? H5T_NATIVE_DOUBLE : H5T_NATIVE_INT64, scratch_.data());
    for (std::size_t i = 0; i < run.rows.size(); ++i) {
      const std::int64_t sample = run.first + static_cast<std::int64_t>(i);
      const std::byte* from = scratch_.data() + i * elements * 8;
      for (std::size_t e = 0; e < elements; ++e) {
        const std::size_t to = run.rows[i] * elements + e;
        if (doubles) {
          double value = 0;
          std::memcpy(&value, from + e * 8, 8);
          into.as<float>()[to] = narrow(array, sample, value);
        } else {
          std::int64_t value = 0;
          std::memcpy(&value, from + e * 8, 8);
          store(array, sample, value, into, to);
        }
      }
    }
  }

  float narrow(const Array& array, std::int64_t sample, double value) const {
    const auto result = static_cast<float>(value);
    if (std::isfinite(value) && !std::isfinite(result)) {
      throw DataError(place(array, sample) + " holds " + std::to_string(value) + ", too large for float32");
    }
    return result;
  }

  void store(const Array& array, std::int64_t sample, std::int64_t value, const Tensor& into,
             std::size_t to) const {
    // Floats hold every integer up to 2 to the power of their digits.
    const std::int64_t most = into.dtype == DType::int32     ? std::numeric_limits<std::int32_t>::max()
                              : into.dtype == DType::float32 ? std::int64_t{1} << 24
                                                             : std::int64_t{1} << 53;
    const std::int64_t least = into.dtype == DType::int32 ? std::numeric_limits<std::int32_t>::min() : -most;
    if (value < least || value > most) {
      throw DataError(place(array, sample) + " holds " + std::to_string(value) +
                      ", which doesn't fit the model's " + std::string(name_of(into.dtype)));
    }
    if (into.dtype == DType::int32) into.as<std::int32_t>()[to] = static_cast<std::int32_t>(value);
    if (into.dtype == DType::float32) into.as<float>()[to] = static_cast<float>(value);
    if (into.dtype == DType::float64) into.as<double>()[to] = static_cast<double>(value);
  }

  std::string place(const Array& array, std::int64_t sample) const {
    return "'" + path_ + "': " + array.path + ", sample " + std::to_string(sample);
  }

  /// The run's samples one after another, as `type`. Holds HDF5's lock only meanwhile.
  void read_stored(const Array& array, const Run& run, hid_t type, void* into) const {
    const hdf5::Lock lock;
    std::vector<hsize_t> start(static_cast<std::size_t>(array.shape.rank()), 0);
    std::vector<hsize_t> count(array.shape.sizes().begin(), array.shape.sizes().end());
    start[0] = static_cast<hsize_t>(run.first);
    count[0] = run.rows.size();
    const std::string what = "can't read " + place(array, run.first);
    const hdf5::Dataspace stored(hdf5::checked(H5Dget_space(array.dataset.get()), what));
    hdf5::checked(
        H5Sselect_hyperslab(stored.get(), H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr),
        what);
    const hdf5::Dataspace memory(
        hdf5::checked(H5Screate_simple(array.shape.rank(), count.data(), nullptr), what));
    hdf5::checked(H5Dread(array.dataset.get(), type, memory.get(), stored.get(), H5P_DEFAULT, into), what);
  }

  std::string path_;
  DataRequest request_;
  hdf5::File file_;
  std::vector<Array> arrays_;  ///< inputs, then targets
  std::vector<std::string> unused_;
  std::int64_t samples_ = 0;
  std::int64_t bytes_read_ = 0;
  std::vector<std::size_t> rows_;
  std::vector<std::byte> scratch_;
};

}  // namespace

std::unique_ptr<Dataset> open_hdf5_dataset(const std::string& path, const DataRequest& request) {
  return std::make_unique<Hdf5Dataset>(path, request);
}

}  // namespace rankine
