#include "test/training/fixture_run.hpp"

#include <openssl/evp.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "checkpoint/keras_model.hpp"
#include "checkpoint/weights_reader.hpp"
#include "runtime/data/hdf5_dataset.hpp"
#include "runtime/training/executor.hpp"

namespace rankine::testing {
namespace {

using Json = nlohmann::json;

std::vector<double> values_of(const Tensor& tensor) {
  std::vector<double> values;
  const auto copy = [&](auto span) { values.assign(span.begin(), span.end()); };
  if (tensor.dtype == DType::float32) copy(tensor.span<float>());
  if (tensor.dtype == DType::float64) copy(tensor.span<double>());
  if (tensor.dtype == DType::int32) copy(tensor.span<std::int32_t>());
  return values;
}

class Sha256 {
 public:
  Sha256() : context_(EVP_MD_CTX_new()) { EVP_DigestInit_ex(context_, EVP_sha256(), nullptr); }
  ~Sha256() { EVP_MD_CTX_free(context_); }
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;
  void add(const void* data, std::size_t bytes) { EVP_DigestUpdate(context_, data, bytes); }
  void add(const std::vector<double>& values) { add(values.data(), values.size() * sizeof(double)); }
  std::string finish() {
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned length = 0;
    EVP_DigestFinal_ex(context_, digest, &length);
    std::string text;
    for (unsigned i = 0; i < length; ++i) {
      constexpr char k_digits[] = "0123456789abcdef";
      text += k_digits[digest[i] >> 4];
      text += k_digits[digest[i] & 15];
    }
    return text;
  }

 private:
  EVP_MD_CTX* context_;
};

/// Notes what each step gave.
class Recorder : public Callback {
 public:
  Recorder(const Optimizer& optimizer, const Model& model, RunResult& result)
      : optimizer_(optimizer), model_(model), result_(result) {}
  void on_step_end(const StepReport& report, bool&) override {
    result_.losses.push_back(report.loss);
    result_.learning_rates.push_back(report.learning_rate);
    result_.gradient_norms.push_back(report.gradient_norm);
    result_.last_gradients.clear();
    for (const Variable& variable : model_.variables()) {
      result_.last_gradients.push_back(variable.trainable
                                           ? values_of(optimizer_.reduced_gradient(variable.ordinal))
                                           : std::vector<double>{});
    }
    if (report.step == 1) result_.first_gradients = result_.last_gradients;
  }

 private:
  const Optimizer& optimizer_;
  const Model& model_;
  RunResult& result_;
};

void set_dropout(Json& node, double rate) {
  if (node.is_object()) {
    if (node.value("class_name", "") == "Dropout") node["config"]["rate"] = rate;
    for (auto& [key, child] : node.items()) set_dropout(child, rate);
  } else if (node.is_array()) {
    for (Json& child : node) set_dropout(child, rate);
  }
}

/// float64 wherever a config says float32.
void widen(Json& node) {
  if (node == "float32") node = "float64";
  if (!node.is_structured()) return;
  for (Json& child : node) widen(child);
}

Json read_json(const std::string& path) {
  std::ifstream file(path);
  return Json::parse(file);
}

Model model_of(const std::string& fixture, const RunOptions& options) {
  LoadedModel loaded = load_model(golden(fixture + "/model.keras"));
  if (options.dropout < 0 && !options.float64) return std::move(loaded.model);
  Json config = Json::parse(loaded.model.config());
  if (options.dropout >= 0) set_dropout(config, options.dropout);
  if (options.float64) widen(config);
  return Model::from_config(config.dump());
}

/// Every bit of a run; doubles hold float32 and int32 values exactly.
std::string digest_of(const RunResult& result) {
  Sha256 sha;
  sha.add(result.losses);
  for (const auto& values : result.last_gradients) sha.add(values);
  for (const auto& values : result.weights) sha.add(values);
  for (const auto& values : result.optimizer_state) sha.add(values);
  return sha.finish();
}

}  // namespace

std::string golden(const std::string& name) {
  return std::string(GOLDEN_FOLDER) + "/" + name;
}

RunResult run_fixture(Communicator& group, const std::string& fixture, const RunOptions& options) {
  Model model = model_of(fixture, options);
  const auto backend = make_cpu_backend(options.threads, options.instructions);
  model.allocate(*backend);
  const WeightsFile weights = WeightsFile::open(golden(fixture + "/" + options.weights + ".weights.h5"));
  read_weights(weights, model.variables(), options.float64 ? FloatPolicy::convert : FloatPolicy::same);

  const Json expected = read_json(golden(fixture + "/expected.json"));
  auto losses = compiled_losses(model);
  auto dataset = open_hdf5_dataset(golden(fixture + "/data.h5"), data_request(model, losses));
  const auto optimizer =
      make_optimizer(options.optimizer.empty() ? model.compile_config() : options.optimizer, options.buckets);
  TrainOptions train;
  train.batch = options.batch > 0 ? options.batch : expected["batch"].get<std::int64_t>();
  train.steps = options.steps;
  train.seed = options.seed;
  train.shuffle = options.shuffle;
  train.accumulate = options.accumulate;
  Trainer trainer(model, *backend, group, *optimizer, std::move(losses), std::move(dataset), nullptr, train);
  if (options.weights == "final") {
    StateDict state = optimizer->state();
    read_optimizer_state(weights, state);
    optimizer->state_changed();
  }

  RunResult result;
  Recorder recorder(*optimizer, model, result);
  std::vector<Callback*> callbacks{&recorder};
  if (options.watcher != nullptr) callbacks.push_back(options.watcher);
  trainer.run(callbacks);
  for (const Variable& variable : model.variables()) {
    result.weights.push_back(values_of(variable.value));
    result.weight_paths.push_back(variable.path);
  }
  for (const StateTensor& tensor : optimizer->state())
    result.optimizer_state.push_back(values_of(tensor.local));
  result.digest = digest_of(result);
  return result;
}

std::vector<std::vector<double>> predict_fixture(const std::string& fixture, const std::string& weights) {
  Model model = model_of(fixture, {});
  const auto backend = make_cpu_backend(1, best_instruction_set());
  model.allocate(*backend);
  read_weights(WeightsFile::open(golden(fixture + "/" + weights + ".weights.h5")), model.variables());
  const auto batch = read_json(golden(fixture + "/expected.json"))["batch"].get<std::int64_t>();
  const auto losses = compiled_losses(model);
  const auto dataset = open_hdf5_dataset(golden(fixture + "/data.h5"), data_request(model, losses));
  std::vector<Buffer> memory;
  std::vector<Tensor> tensors;
  for (const Field& field : fields_of(*dataset)) {
    Tensor tensor{nullptr, field.spec.dtype, field.spec.shape.with_leading(batch)};
    memory.push_back(backend->allocate(tensor.bytes()));
    tensor.data = memory.back().data();
    tensors.push_back(tensor);
  }
  std::vector<std::int64_t> indices(static_cast<std::size_t>(batch));
  for (std::size_t i = 0; i < indices.size(); ++i) indices[i] = static_cast<std::int64_t>(i);
  dataset->read(indices, tensors);
  Executor executor(model, *backend, {}, batch, false);
  std::vector<std::vector<double>> outputs;
  for (const Tensor& output : executor.predict(std::span(tensors).first(dataset->inputs().size()), batch)) {
    outputs.push_back(values_of(output));
  }
  return outputs;
}

}  // namespace rankine::testing
