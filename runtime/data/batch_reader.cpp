#include "runtime/data/batch_reader.hpp"

#include <new>

#include "runtime/error.hpp"

namespace rankine {
namespace {

constexpr std::align_val_t k_alignment{64};

/// Host memory: batches are read here whatever the device.
Buffer host_buffer(std::size_t bytes) {
  return {::operator new(bytes, k_alignment), bytes,
          [](void* data, std::size_t) { ::operator delete(data, k_alignment); }};
}

/// The tensor of `rows` samples of a field in `buffer`, which grows when it is too small.
Tensor rows_in(Buffer& buffer, const Field& field, std::int64_t rows) {
  Tensor tensor{nullptr, field.spec.dtype, field.spec.shape.with_leading(rows)};
  // At least one byte, so that a tensor without rows isn't taken for an absent one.
  const std::size_t bytes = std::max<std::size_t>(tensor.bytes(), 1);
  if (buffer.bytes() < bytes) buffer = host_buffer(bytes);
  tensor.data = buffer.data();
  return tensor;
}

}  // namespace

std::int64_t Batch::rows() const {
  std::int64_t rows = 0;
  for (const Range& range : ranges) rows += range.size();
  return rows;
}

BatchReader::BatchReader(Dataset& dataset, const SampleOrder& order, std::int64_t batch, BatchShare share)
    : dataset_(dataset), order_(order), schedule_{order.samples(), batch}, share_(std::move(share)) {
  if (batch < 1) throw ConfigError("the batch must be 1 sample or more, not " + std::to_string(batch));
  if (order.samples() != dataset.samples()) {
    throw ConfigError("the order is of " + std::to_string(order.samples()) + " samples, the data has " +
                      std::to_string(dataset.samples()));
  }
}

void BatchReader::read(std::int64_t step, Memory& into) {
  Batch& batch = into.batch;
  batch.step = step;
  batch.place = schedule_.at(step);
  batch.ranges = share_(batch.place.samples);
  std::erase_if(batch.ranges, [](const Range& range) { return range.size() <= 0; });

  indices_.clear();
  for (const Range& range : batch.ranges) {
    for (std::int64_t i = range.begin; i < range.end; ++i) {
      indices_.push_back(order_.sample(batch.place.epoch, batch.place.first + i));
    }
  }
  const std::vector<Field> wanted = fields_of(dataset_);
  into.buffers.resize(wanted.size());
  std::vector<Tensor> fields;
  for (std::size_t i = 0; i < wanted.size(); ++i)
    fields.push_back(rows_in(into.buffers[i], wanted[i], std::ssize(indices_)));
  if (!indices_.empty()) dataset_.read(indices_, fields);
  const auto targets = fields.begin() + std::ssize(dataset_.inputs());
  const auto weights = targets + std::ssize(dataset_.targets());
  batch.inputs.assign(fields.begin(), targets);
  batch.targets.assign(targets, weights);
  batch.weights.assign(weights, fields.end());
}

}  // namespace rankine
