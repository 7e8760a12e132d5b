// One bit pattern: whatever the ranks, micro-batches, threads, buckets and instruction set, a run gives one
// digest.
#include <map>

#include "runtime/mesh/self_communicator.hpp"
#include "test/launched.hpp"
#include "test/training/fixture_run.hpp"

using namespace rankine;
using namespace rankine::testing;

namespace {

/// Golden models; the second is the optimizer to use where the model's own isn't here.
const std::map<std::string, std::string> k_fixtures = {
    {"mlp_sgd", ""},       {"mlp_adam_cosine", ""},
    {"mlp_lion", "adamw"}, {"einsum", ""},
    {"tiny_gpt", ""},      {"gqa", ""},
    {"nested", ""},        {"odd", "adam"},
    {"sharded", ""},       {"embedding_bag", "adam"},
    {"dropout", ""},       {"two_outputs", ""},
    {"text", ""},          {"probabilities", ""},
    {"everyday", ""},      {"reversible", ""},
    {"masked", ""},        {"regularized", ""},
    {"weighted", ""},      {"ignored", ""},
    {"batch_norm", ""},
};

std::vector<InstructionSet> instruction_sets() {
  std::vector<InstructionSet> sets;
  for (const InstructionSet set : {InstructionSet::portable, InstructionSet::avx2, InstructionSet::avx512}) {
    if (set <= best_instruction_set()) sets.push_back(set);
  }
  return sets;
}

std::string one_rank(const std::string& fixture, const RunOptions& options) {
  SelfCommunicator alone("one rank");
  return run_fixture(alone, fixture, options).digest;
}

constexpr std::int64_t k_everything = std::int64_t{1} << 40;

}  // namespace

TEST_CASE("every golden model has the same bits on 1 to 8 ranks", "[same-bits]") {
  for (const auto& entry : k_fixtures) {
    const std::string& fixture = entry.first;
    RunOptions plain;
    plain.optimizer = entry.second;
    const std::string expected = one_rank(fixture, plain);
    test::for_groups(1, 8, [&](Communicator& group) {
      // Ranks vary together with what else must not matter, each in turn.
      const int n = group.size();
      RunOptions varied = plain;
      varied.accumulate = 1 + n % 4;
      varied.threads = 1 + n % 2;
      const auto sets = instruction_sets();
      varied.instructions = sets[static_cast<std::size_t>(n) % sets.size()];
      varied.buckets.first_bucket_bytes = n % 3 == 0 ? 1024 : k_everything;
      varied.buckets.bucket_bytes = n % 2 == 0 ? 1024 : k_everything;
      const std::string same = run_fixture(group, fixture, plain).digest;
      const std::string other = run_fixture(group, fixture, varied).digest;
      INFO(fixture << " on " << n << " ranks");
      REQUIRE_ON_ALL_RANKS(group, same == expected);
      REQUIRE_ON_ALL_RANKS(group, other == expected);
    });
  }
}

TEST_CASE("micro-batches, threads, buckets and instruction sets change no bit", "[same-bits][unsanitized]") {
  if (test::group().size() > 3) return;  // these vary within a rank: few ranks show as much
  for (const auto& entry : k_fixtures) {
    const std::string& fixture = entry.first;
    RunOptions plain;
    plain.optimizer = entry.second;
    const std::string expected = one_rank(fixture, plain);
    std::vector<RunOptions> variations;
    for (int accumulate = 2; accumulate <= 4; ++accumulate) {
      variations.push_back(plain);
      variations.back().accumulate = accumulate;
    }
    variations.push_back(plain);
    variations.back().threads = 2;
    for (const InstructionSet set : instruction_sets()) {
      variations.push_back(plain);
      variations.back().instructions = set;
    }
    for (const std::int64_t bytes : {std::int64_t{1} << 10, std::int64_t{1} << 14, k_everything}) {
      variations.push_back(plain);
      variations.back().buckets = {bytes, bytes};
    }
    for (const RunOptions& options : variations) {
      const std::string digest = run_fixture(test::group(), fixture, options).digest;
      INFO(fixture << ": accumulate " << options.accumulate << ", threads " << options.threads
                   << ", instructions " << static_cast<int>(options.instructions) << ", buckets "
                   << options.buckets.bucket_bytes);
      REQUIRE_ON_ALL_RANKS(test::group(), digest == expected);
    }
  }
}

TEST_CASE("100 shuffled steps with dropout have the same bits on 1 to 8 ranks", "[same-bits][unsanitized]") {
  RunOptions options;
  options.steps = 100;
  options.shuffle = true;
  options.dropout = 0.1;
  options.seed = 11;
  const std::string expected = one_rank("tiny_gpt", options);
  test::for_groups(1, 8, [&](Communicator& group) {
    const std::string digest = run_fixture(group, "tiny_gpt", options).digest;
    INFO(group.size() << " ranks");
    REQUIRE_ON_ALL_RANKS(group, digest == expected);
  });
}

TEST_CASE("batches that leave a short last one have the same bits on 1 to 8 ranks", "[same-bits]") {
  RunOptions options;
  options.batch = 13;  // 32 samples: 13, 13, 6
  options.steps = 7;
  options.shuffle = true;
  const std::string expected = one_rank("tiny_gpt", options);
  test::for_groups(1, 8, [&](Communicator& group) {
    RunOptions varied = options;
    varied.accumulate = group.size() % 3 + 1;
    REQUIRE_ON_ALL_RANKS(group, run_fixture(group, "tiny_gpt", options).digest == expected);
    REQUIRE_ON_ALL_RANKS(group, run_fixture(group, "tiny_gpt", varied).digest == expected);
  });
}
