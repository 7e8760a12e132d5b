// A program of somebody else's, built with pkg-config against an installed Rankine by test_install.py.
#include <cstdio>

#include "runtime/compute/backend.hpp"
#include "runtime/model/build.hpp"

int main() {
  rankine::ModelBuilder builder("outside");
  auto x = builder.input("x", {5});
  x = builder.layer("Dense", {{"units", 7}, {"activation", "relu"}}, {x});
  rankine::Model model = builder.build({builder.layer("Dense", {{"units", 3}}, {x})});
  const auto backend = rankine::make_cpu_backend(1, rankine::best_instruction_set());
  model.allocate(*backend);
  model.initialize(1);
  std::int64_t parameters = 0;
  for (const rankine::Variable& variable : model.variables()) parameters += variable.shape.elements();
  std::printf("%lld parameters\n", static_cast<long long>(parameters));
}
