#define CATCH_CONFIG_RUNNER
#define CATCH_CONFIG_NOSTDOUT
#include <atomic>
#include <catch2/catch.hpp>
#include <condition_variable>
#include <cstdio>
#include <exception>
#include <iostream>
#include <mutex>
#include <sstream>
#include <thread>

#include "runtime/error.hpp"
#include "test/launched.hpp"

using namespace rankine;

namespace {

constexpr auto k_group_deadline = std::chrono::seconds(15);
constexpr auto k_verdict_deadline = std::chrono::seconds(60);

/// Ends the job when a test case takes too long: a hang becomes a failure with a name.
class Deadline {
 public:
  Deadline(std::chrono::seconds limit, std::function<void(const std::string&)> on_hang)
      : limit_(limit), on_hang_(std::move(on_hang)), thread_([this] { run(); }) {}
  ~Deadline() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    thread_.join();
  }
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

  void restart(const std::string& test) {
    {
      const std::lock_guard lock(mutex_);
      test_ = test;
      end_ = std::chrono::steady_clock::now() + limit_;
    }
    wake_.notify_all();
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    while (!stopping_) {
      wake_.wait_until(lock, end_);
      if (!stopping_ && std::chrono::steady_clock::now() >= end_) on_hang_(test_);
    }
  }

  std::chrono::seconds limit_;
  std::function<void(const std::string&)> on_hang_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::string test_ = "before the first test";
  std::chrono::steady_clock::time_point end_ = std::chrono::steady_clock::now() + limit_;
  bool stopping_ = false;
  std::thread thread_;
};

/// One launch: what the tests and Catch2's hooks share.
struct Launch {
  Launch(int* argc, char*** argv) : world(argc, argv) {}
  void speak();

  World world;
  std::ostringstream quiet;  // what a rank above 0 has to say; printed only if something fails
  std::unique_ptr<Communicator> verdict;
  std::unique_ptr<Communicator> group;
  std::unique_ptr<Deadline> deadline;
  std::int64_t failures = 0;
};

/// Prints what this rank has kept back, its name in front of every line.
void Launch::speak() {
  std::istringstream lines(quiet.str());
  quiet.str("");
  std::string out;
  for (std::string line; std::getline(lines, line);) out += world.prefix() + line + "\n";
  std::fputs(out.c_str(), stdout);
  std::fflush(stdout);
}

Launch* launch = nullptr;  // Catch2 makes its listeners itself: they have no other way to find it

std::ostream& rank_stream() {
  return launch != nullptr && launch->world.rank() > 0 ? launch->quiet : std::cout;
}

/// Keeps the ranks in step: each test case has a fresh group, and ends on all ranks before the next begins.
struct JoinRanks : Catch::TestEventListenerBase {
  using TestEventListenerBase::TestEventListenerBase;

  void testCaseStarting(const Catch::TestCaseInfo& test) override {
    launch->deadline->restart(test.name);
    launch->group = launch->verdict->split(0, launch->world.rank(), "test");
    launch->group->set_deadline(k_group_deadline);
  }

  void testCaseEnded(const Catch::TestCaseStats& stats) override {
    if (!stats.totals.assertions.allOk()) {
      ++launch->failures;
      launch->speak();
    }
    std::vector<std::int64_t> failed(static_cast<std::size_t>(launch->world.size()));
    failed[static_cast<std::size_t>(launch->world.rank())] = stats.totals.assertions.allOk() ? 0 : 1;
    launch->verdict->all_reduce(std::span<std::int64_t>(failed), ReduceOp::max)->wait();
    launch->group.reset();
  }
};
CATCH_REGISTER_LISTENER(JoinRanks)

int run(int argc, char** argv, Launch& here) {
  Catch::Session session;
  int seconds = 120;
  using Catch::clara::Opt;
  session.cli(session.cli() | Opt(seconds, "seconds")["--deadline"]("longest time of one test case"));
  if (const int usage = session.applyCommandLine(argc, argv); usage != 0) return usage;
  here.verdict = here.world.communicator().split(0, here.world.rank(), "verdict");
  here.verdict->set_deadline(k_verdict_deadline);
  here.deadline = std::make_unique<Deadline>(std::chrono::seconds(seconds), [&](const std::string& test) {
    here.speak();
    here.world.report_failure("the test '" + test + "' took more than " + std::to_string(seconds) + " s");
    here.world.abort(static_cast<int>(ExitCode::rank_failed));
  });
  std::int64_t code[] = {session.run()};
  if (code[0] != 0) here.speak();
  here.verdict->all_reduce(std::span<std::int64_t>(code), ReduceOp::max)->wait();
  here.deadline.reset();
  return static_cast<int>(std::min<std::int64_t>(code[0], 1));
}

}  // namespace

namespace Catch {
std::ostream& cout() {
  return rank_stream();
}
std::ostream& cerr() {
  return rank_stream();
}
std::ostream& clog() {
  return rank_stream();
}
}  // namespace Catch

namespace rankine::test {

World& world() {
  return launch->world;
}

Communicator& group() {
  return *launch->group;
}

void for_groups(int min, int max, const std::function<void(Communicator&)>& body) {
  // It waits for groups that reach their own deadline, so it must have more time.
  const auto verdict = group().split(0, group().rank(), "verdict of for_groups");
  verdict->set_deadline(k_verdict_deadline);
  for (int size = min; size <= std::min(max, group().size()); ++size) {
    const auto part = verdict->split(group().rank() < size ? 0 : -1, group().rank(), "test");
    if (part) part->set_deadline(k_group_deadline);
    std::exception_ptr error;
    try {
      if (part) body(*part);
    } catch (...) {
      error = std::current_exception();
    }
    std::int64_t failed[] = {error ? 1 : 0};
    verdict->all_reduce(std::span<std::int64_t>(failed), ReduceOp::max)->wait();
    if (error) std::rethrow_exception(error);
    if (failed[0] != 0) FAIL("another rank failed in a group of " << size);
  }
}

Verdict on_all_ranks(Communicator& group, const std::function<bool()>& check) {
  std::string mine;
  try {
    if (!check()) mine = "false";
  } catch (const std::exception& e) {
    mine = e.what();
  }
  Verdict verdict;
  const auto texts = group.all_gather_text(mine);
  for (int r = 0; r < group.size(); ++r) {
    const auto& text = texts[static_cast<std::size_t>(r)];
    if (text.empty()) continue;
    verdict.ok = false;
    verdict.who += group.member(r) + ": " + text + "\n";
  }
  return verdict;
}

}  // namespace rankine::test

int main(int argc, char** argv) {
  Launch here(&argc, &argv);
  launch = &here;
  int code = static_cast<int>(ExitCode::rank_failed);
  try {
    code = run(argc, argv, here);
  } catch (const std::exception& e) {
    here.speak();
    here.world.report_failure(e.what());
  }
  // Failed tests may have left collectives behind that MPI would wait for.
  if (code != 0) here.world.abort(code);
  here.verdict.reset();
  launch = nullptr;
  return code;
}
