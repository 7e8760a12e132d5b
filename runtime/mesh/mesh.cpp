#include "runtime/mesh/mesh.hpp"

#include <charconv>

#include "runtime/error.hpp"

namespace rankine {
namespace {

[[noreturn]] void refuse(std::string_view text, std::string_view part, const std::string& why) {
  throw UsageError("mesh '" + std::string(text) + "': '" + std::string(part) + "' " + why +
                   ". A mesh is written data=2,tensor=4; an axis that is left out is 1.");
}

int parse_size(std::string_view text, std::string_view part, std::string_view digits) {
  int size = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), size);
  if (error != std::errc() || end != digits.data() + digits.size() || size < 1) {
    refuse(text, part, "needs a whole number of at least 1 behind '='");
  }
  return size;
}

}  // namespace

std::string MeshShape::to_string() const {
  return "data=" + std::to_string(data) + ",tensor=" + std::to_string(tensor);
}

MeshShape MeshShape::parse(std::string_view text) {
  MeshShape shape;
  bool has_data = false;
  bool has_tensor = false;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    const std::string_view part = text.substr(at, comma - at);
    at = comma + 1;
    const std::size_t equals = part.find('=');
    const std::string_view axis = part.substr(0, equals);
    if (equals == std::string_view::npos) refuse(text, part, "isn't of the form axis=size");
    if (axis != "data" && axis != "tensor")
      refuse(text, part, "names no axis of the mesh: they are data and tensor");
    bool& seen = axis == "data" ? has_data : has_tensor;
    if (seen) refuse(text, part, "gives an axis a second time");
    seen = true;
    (axis == "data" ? shape.data : shape.tensor) = parse_size(text, part, part.substr(equals + 1));
  }
  constexpr std::int64_t k_most = 1 << 30;
  if (std::int64_t{shape.data} * shape.tensor > k_most)
    refuse(text, text, "has more ranks than can be counted");
  return shape;
}

Mesh::Mesh(Communicator& world, MeshShape shape) : shape_(shape), world_(world) {
  if (shape.size() != world.size()) {
    throw ConfigError("the mesh " + shape.to_string() + " needs " + std::to_string(shape.size()) +
                      " ranks, but " + std::to_string(world.size()) +
                      " were started. Start as many, or give a mesh whose sizes multiply to " +
                      std::to_string(world.size()) + ".");
  }
  const int data_index = world.rank() / shape.tensor;
  const int tensor_index = world.rank() % shape.tensor;
  data_ = world.split(tensor_index, data_index, "data");
  tensor_ = world.split(data_index, tensor_index, "tensor");
}

}  // namespace rankine
