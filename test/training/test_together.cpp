// Models whose passes are trained together: what one rank can't do ends on all, with no rank left waiting.
#include <limits>
#include <nlohmann/json.hpp>

#include "checkpoint/keras_model.hpp"
#include "checkpoint/weights_reader.hpp"
#include "runtime/data/hdf5_dataset.hpp"
#include "runtime/error.hpp"
#include "test/launched.hpp"
#include "test/training/fixture_run.hpp"

using namespace rankine;
using namespace rankine::testing;

namespace {

/// A dataset of which one sample is spoilt.
class Spoilt final : public Dataset {
 public:
  using Spoil = std::function<void(std::span<const Tensor> into, std::int64_t row)>;
  Spoilt(std::unique_ptr<Dataset> data, std::int64_t sample, Spoil spoil)
      : data_(std::move(data)), sample_(sample), spoil_(std::move(spoil)) {}
  std::int64_t samples() const override { return data_->samples(); }
  const std::vector<Field>& inputs() const override { return data_->inputs(); }
  const std::vector<Field>& targets() const override { return data_->targets(); }
  std::int64_t bytes_read() const override { return data_->bytes_read(); }
  std::string description() const override { return data_->description(); }
  void read(std::span<const std::int64_t> indices, std::span<const Tensor> into) override {
    data_->read(indices, into);
    for (std::size_t row = 0; row < indices.size(); ++row)
      if (indices[row] == sample_) spoil_(into, static_cast<std::int64_t>(row));
  }

 private:
  std::unique_ptr<Dataset> data_;
  std::int64_t sample_;
  Spoil spoil_;
};

/// Trains the fixture's first two steps and says what is thrown.
template <class Error>
std::string error_of(Communicator& group, int accumulate, std::int64_t sample, const Spoilt::Spoil& spoil) {
  Model model = load_model(golden("batch_norm/model.keras")).model;
  const auto backend = make_cpu_backend(1, best_instruction_set());
  model.allocate(*backend);
  read_weights(WeightsFile::open(golden("batch_norm/initial.weights.h5")), model.variables());
  auto losses = compiled_losses(model);
  auto data = open_hdf5_dataset(golden("batch_norm/data.h5"), data_request(model, losses));
  const auto optimizer = make_optimizer(model.compile_config(), {});
  TrainOptions options;
  options.batch = 13;
  options.steps = 2;
  options.shuffle = false;
  options.accumulate = accumulate;
  Trainer trainer(model, *backend, group, *optimizer, std::move(losses),
                  std::make_unique<Spoilt>(std::move(data), sample, spoil), nullptr, options);
  try {
    trainer.run({});
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace

TEST_CASE("an id out of range in a model with batch statistics ends all ranks", "[together]") {
  const auto spoil = [](std::span<const Tensor> into, std::int64_t row) {
    for (const Tensor& tensor : into)
      if (tensor.dtype == DType::int32 && tensor.shape.rank() == 2)
        tensor.as<std::int32_t>()[row * tensor.shape[1]] = 99;
  };
  test::for_groups(1, 8, [&](Communicator& group) {
    const std::string text = error_of<DataError>(group, 1 + group.size() % 3, 13 + 9, spoil);
    INFO(text);
    REQUIRE_ON_ALL_RANKS(group, text.find("99") != std::string::npos);
  });
}

TEST_CASE("a number that isn't finite in a model with batch statistics is found on all ranks", "[together]") {
  const auto spoil = [](std::span<const Tensor> into, std::int64_t row) {
    for (const Tensor& tensor : into)
      if (tensor.dtype == DType::float32)
        tensor.as<float>()[row * tensor.shape[1] * tensor.shape[2]] = std::numeric_limits<float>::quiet_NaN();
  };
  test::for_groups(1, 8, [&](Communicator& group) {
    const std::string text = error_of<NumericError>(group, 1 + group.size() % 3, 3, spoil);
    INFO(text);
    REQUIRE_ON_ALL_RANKS(group, text.find("step 1") != std::string::npos);
    REQUIRE_ON_ALL_RANKS(group, text.find("input \"numbers\"") != std::string::npos);
  });
}
