#include "checkpoint/keras_model.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "checkpoint/atomic_file.hpp"
#include "checkpoint/keras_archive.hpp"
#include "checkpoint/weights_writer.hpp"
#include "runtime/error.hpp"

namespace rankine {
namespace {

constexpr const char* k_archive_end = ".keras";
constexpr const char* k_weights_end = ".weights.h5";

std::string read_config(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw CheckpointError("can't open the model " + path + ": " + std::strerror(errno));
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// The name under which Keras files the optimizer; it comes from the compile config, as Keras's own does.
std::string optimizer_name(const Model& model, const StateDict& state) {
  const auto config = nlohmann::json::parse(model.compile_config(), nullptr, false);
  const nlohmann::json::json_pointer place("/optimizer/config/name");
  if (config.is_object() && config.contains(place) && config[place].is_string())
    return config[place].get<std::string>();
  return state.empty() ? "" : state.front().path.substr(0, state.front().path.find('/'));
}

std::vector<std::byte> image_of(const Model& model, const StateDict& optimizer) {
  const std::string name = optimizer.empty() ? "" : optimizer_name(model, optimizer);
  return weights_image({model.variables(), model.save_groups(), optimizer, name});
}

}  // namespace

LoadedModel load_model(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored) && !std::filesystem::is_regular_file(path, ignored) &&
      !std::filesystem::is_directory(path, ignored))
    throw CheckpointError("can't read a model from '" + path +
                          "': it is neither a regular file nor a folder");
  if (path.ends_with(".json")) return {Model::from_config(read_config(path)), std::nullopt};
  const KerasArchive archive = KerasArchive::open(path);
  return {Model::from_config(archive.config()), archive.weights()};
}

void write_keras(const std::string& path, const Model& model, const StateDict& optimizer) {
  write_archive(path, model.config(), image_of(model, optimizer));
}

void write_weights(const std::string& path, const Model& model, const StateDict& optimizer) {
  AtomicFile file(path);
  file.write(image_of(model, optimizer));
  file.commit();
}

void check_output_name(const std::string& path) {
  if (!path.ends_with(k_archive_end) && !path.ends_with(k_weights_end))
    throw UsageError(path + ": a model is written as " + k_archive_end + ", its weights alone as " +
                     k_weights_end);
}

void write_model(const std::string& path, const Model& model, const StateDict& optimizer) {
  check_output_name(path);
  if (path.ends_with(k_archive_end))
    write_keras(path, model, optimizer);
  else
    write_weights(path, model, optimizer);
}

}  // namespace rankine
