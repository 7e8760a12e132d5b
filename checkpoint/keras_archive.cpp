#include "checkpoint/keras_archive.hpp"

#include <zip.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "checkpoint/atomic_file.hpp"
#include "runtime/error.hpp"
#include "runtime/handle.hpp"

namespace rankine {
namespace {

namespace fs = std::filesystem;

constexpr const char* k_config = "config.json";
constexpr const char* k_metadata = "metadata.json";
constexpr const char* k_weights = "model.weights.h5";
constexpr const char* k_npz = "model.weights.npz";
/// What deflate can do at best; more is a lie in the directory.
constexpr std::uint64_t k_deflate_best = 1032;

zip_t* no_zip() {
  return nullptr;
}
void discard_zip(zip_t* zip) {
  zip_discard(zip);
}
using Zip = UniqueHandle<zip_t*, discard_zip, no_zip>;

zip_file_t* no_member() {
  return nullptr;
}
void close_member(zip_file_t* member) {
  zip_fclose(member);
}
using Member = UniqueHandle<zip_file_t*, close_member, no_member>;

std::string text_of_code(int code) {
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  std::string text = zip_error_strerror(&error);
  zip_error_fini(&error);
  return text;
}

/// A weights file, or a model as Keras 2 saved it.
bool is_hdf5(const std::string& path) {
  constexpr std::string_view k_signature = "\x89HDF\r\n\x1a\n";
  std::ifstream file(path, std::ios::binary);
  std::string start(k_signature.size(), ' ');
  file.read(start.data(), static_cast<std::streamsize>(start.size()));
  return start == k_signature;
}

Zip open_zip(const std::string& path) {
  int code = 0;
  Zip zip(zip_open(path.c_str(), ZIP_RDONLY, &code));
  if (zip) return zip;
  if (is_hdf5(path))
    throw CheckpointError(
        path +
        " is an HDF5 file, not a .keras archive: save the model with model.save(\"name.keras\"), "
        "or give its config as JSON and this file as its weights");
  throw CheckpointError("can't read " + path + " (" + std::to_string(fs::file_size(path)) +
                        " bytes) as a .keras archive: " + text_of_code(code) +
                        ". It is damaged, or was cut off while it was saved or copied; use another copy");
}

/// A member's place in the archive. Two members of one name are refused: readers differ in which they take.
std::optional<zip_uint64_t> find_member(zip_t* zip, const std::string& path, const std::string& name) {
  std::optional<zip_uint64_t> found;
  const zip_int64_t count = zip_get_num_entries(zip, 0);
  for (zip_uint64_t i = 0; i < static_cast<zip_uint64_t>(count); ++i) {
    const char* entry = zip_get_name(zip, i, ZIP_FL_ENC_GUESS);
    if (entry == nullptr || name != entry) continue;
    if (found)
      throw CheckpointError(path + " has two members " + name + ": it isn't clear which one is meant");
    found = i;
  }
  return found;
}

/// Refuses what can't be true or would fill the memory, before anything is allocated.
void check_sizes(const zip_stat_t& member, const std::string& what, std::uint64_t archive_bytes,
                 const ArchiveLimits& limits, bool text) {
  if (member.encryption_method != ZIP_EM_NONE)
    throw CheckpointError(what + " is encrypted; save it without a password");
  const bool stored = member.comp_method == ZIP_CM_STORE;
  if (!stored && member.comp_method != ZIP_CM_DEFLATE)
    throw CheckpointError(what + " is compressed by method " + std::to_string(member.comp_method) +
                          "; stored and deflated members are read");
  const bool impossible =
      member.comp_size > archive_bytes ||
      (stored ? member.size != member.comp_size : member.size / k_deflate_best > member.comp_size + 1);
  if (impossible)
    throw CheckpointError(what + " claims " + std::to_string(member.size) + " bytes from " +
                          std::to_string(member.comp_size) + " stored ones in a file of " +
                          std::to_string(archive_bytes) + " bytes; the archive is damaged");
  const bool bomb = member.size > limits.floor_bytes && member.size / limits.ratio > member.comp_size;
  if (bomb || (text && member.size > limits.text_bytes))
    throw CheckpointError(what + " would unpack " + std::to_string(member.comp_size) + " bytes to " +
                          std::to_string(member.size) + "; this is refused as a zip bomb");
}

std::vector<std::byte> read_member(zip_t* zip, zip_uint64_t index, std::uint64_t bytes,
                                   const std::string& what) {
  const Member member(zip_fopen_index(zip, index, 0));
  if (!member) throw CheckpointError("can't read " + what + ": " + zip_strerror(zip));
  std::vector<std::byte> content(bytes);
  std::uint64_t have = 0;
  std::byte beyond{};
  while (true) {
    // The last read asks for a byte too many: only at the end does libzip compare the checksum.
    const zip_int64_t got = have < bytes ? zip_fread(member.get(), content.data() + have, bytes - have)
                                         : zip_fread(member.get(), &beyond, 1);
    if (got < 0)
      throw CheckpointError(what + " is damaged: " + zip_error_strerror(zip_file_get_error(member.get())));
    if (got == 0) break;
    if (have == bytes)
      throw CheckpointError(what + " holds more than the " + std::to_string(bytes) + " bytes it claims");
    have += static_cast<std::uint64_t>(got);
  }
  if (have < bytes)
    throw CheckpointError(what + " ends after " + std::to_string(have) + " of " + std::to_string(bytes) +
                          " bytes");
  return content;
}

std::string read_text(const fs::path& path, const ArchiveLimits& limits) {
  if (fs::file_size(path) > limits.text_bytes)
    throw CheckpointError(path.string() + " is too big for a config");
  std::ifstream file(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file.good() && !file.eof()) throw CheckpointError("can't read " + path.string());
  return text;
}

std::string local_time() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%d@%H:%M:%S", &local);
  return text.data();
}

void add_member(zip_t* zip, const char* name, std::span<const std::byte> bytes, const std::string& path) {
  zip_source_t* source = zip_source_buffer(zip, bytes.data(), bytes.size(), 0);
  const zip_int64_t index = source == nullptr ? -1 : zip_file_add(zip, name, source, ZIP_FL_ENC_UTF_8);
  if (index < 0) {
    zip_source_free(source);
    throw CheckpointError("can't write " + path + ": " + zip_strerror(zip));
  }
  zip_set_file_compression(zip, static_cast<zip_uint64_t>(index), ZIP_CM_STORE, 0);
}

[[noreturn]] void refuse_missing(const std::string& path) {
  throw CheckpointError("can't open " + path + ": " + std::strerror(errno == 0 ? ENOENT : errno) +
                        ". A .keras file, or a folder with config.json and model.weights.h5, is wanted");
}

}  // namespace

struct KerasArchive::State {
  std::string path;
  ArchiveLimits limits;
  Zip zip;  ///< empty for a folder
  std::string config;
  std::string metadata;

  std::optional<std::vector<std::byte>> member(const std::string& name, bool text) const {
    const auto index = find_member(zip.get(), path, name);
    if (!index) return std::nullopt;
    const std::string what = path + ": " + name;
    zip_stat_t stat;
    zip_stat_init(&stat);
    if (zip_stat_index(zip.get(), *index, 0, &stat) != 0)
      throw CheckpointError("can't read " + what + ": " + zip_strerror(zip.get()));
    check_sizes(stat, what, fs::file_size(path), limits, text);
    return read_member(zip.get(), *index, stat.size, what);
  }

  std::optional<std::string> text(const std::string& name) const {
    if (!zip) {
      const fs::path file = fs::path(path) / name;
      return fs::exists(file) ? std::optional(read_text(file, limits)) : std::nullopt;
    }
    const auto bytes = member(name, true);
    if (!bytes) return std::nullopt;
    return std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  }

  bool has(const char* name) const {
    return zip ? find_member(zip.get(), path, name).has_value() : fs::exists(fs::path(path) / name);
  }
};

KerasArchive::KerasArchive(std::unique_ptr<State> state) : state_(std::move(state)) {}
KerasArchive::KerasArchive(KerasArchive&&) noexcept = default;
KerasArchive& KerasArchive::operator=(KerasArchive&&) noexcept = default;
KerasArchive::~KerasArchive() = default;

bool KerasArchive::looks_like(const std::string& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return fs::exists(fs::path(path) / k_config, ignored);
  std::array<char, 4> head{};
  std::ifstream file(path, std::ios::binary);
  // "PK\3\4" begins a zip with members, "PK\5\6" an empty one.
  return file.read(head.data(), head.size()) && head[0] == 'P' && head[1] == 'K' &&
         (head[2] == 3 || head[2] == 5);
}

KerasArchive KerasArchive::open(const std::string& path, const ArchiveLimits& limits) {
  auto state = std::make_unique<State>();
  state->path = path;
  state->limits = limits;
  std::error_code code;
  const bool folder = fs::is_directory(path, code);
  errno = code.value();
  if (!folder && !std::ifstream(path, std::ios::binary)) refuse_missing(path);
  if (!folder) state->zip = open_zip(path);
  const auto config = state->text(k_config);
  if (!config) throw CheckpointError(path + " has no member config.json: it isn't a complete .keras model");
  state->config = *config;
  state->metadata = state->text(k_metadata).value_or("");
  return KerasArchive(std::move(state));
}

const std::string& KerasArchive::config() const {
  return state_->config;
}
const std::string& KerasArchive::metadata() const {
  return state_->metadata;
}

WeightsFile KerasArchive::weights() const {
  if (!state_->has(k_weights)) {
    if (state_->has(k_npz))
      throw CheckpointError(state_->path +
                            " keeps its weights as model.weights.npz, which isn't read; save the model with "
                            "Keras's default weights format (model.weights.h5)");
    throw CheckpointError(state_->path +
                          " has no member model.weights.h5: the model comes without its weights");
  }
  if (!state_->zip) return WeightsFile::open((fs::path(state_->path) / k_weights).string());
  return WeightsFile::from_image(*state_->member(k_weights, false), state_->path + ": " + k_weights);
}

void write_archive(const std::string& path, const std::string& config, std::span<const std::byte> weights) {
  const nlohmann::ordered_json facts{
      {"keras_version", "3.15.1"}, {"date_saved", local_time()}, {"writer", "rankine"}};
  const std::string metadata = facts.dump();
  AtomicFile file(path);
  file.write({});  // The system's own reason when the folder is missing or read-only; libzip's is vague.
  int code = 0;
  Zip zip(zip_open(file.temporary().c_str(), ZIP_CREATE | ZIP_TRUNCATE, &code));
  if (!zip) throw CheckpointError("can't write " + path + ": " + text_of_code(code));
  add_member(zip.get(), k_metadata, std::as_bytes(std::span(metadata)), path);
  add_member(zip.get(), k_config, std::as_bytes(std::span(config)), path);
  add_member(zip.get(), k_weights, weights, path);
  if (zip_close(zip.get()) != 0)
    throw CheckpointError("can't write " + path + ": " + zip_strerror(zip.get()));
  static_cast<void>(zip.release());  // zip_close frees it unless it fails
  file.commit();
}

}  // namespace rankine
