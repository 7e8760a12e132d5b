#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "runtime/mesh/communicator.hpp"

namespace rankine {

/// Sizes of the mesh's axes. "data=2,tensor=4" in text.
struct MeshShape {
  int data = 1;
  int tensor = 1;
  int size() const { return data * tensor; }
  bool operator==(const MeshShape&) const = default;
  std::string to_string() const;
  /// Throws UsageError naming the part that can't be understood.
  static MeshShape parse(std::string_view text);
};

/// The ranks of a communicator arranged with named axes; `tensor` is innermost, so rank = data_index * T +
/// tensor_index.
class Mesh {
 public:
  /// Collective over `world`. Throws ConfigError when the shape's size isn't the world's.
  Mesh(Communicator& world, MeshShape shape);
  MeshShape shape() const { return shape_; }
  Communicator& world() { return world_; }
  Communicator& data() { return *data_; }      ///< ranks that differ in their data index only
  Communicator& tensor() { return *tensor_; }  ///< ranks that differ in their tensor index only

 private:
  MeshShape shape_;
  Communicator& world_;
  std::unique_ptr<Communicator> data_;
  std::unique_ptr<Communicator> tensor_;
};

}  // namespace rankine
