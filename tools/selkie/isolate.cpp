#include "isolate.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

#include "base/error.h"

namespace selkie::cli {
namespace {

using Clock = std::chrono::steady_clock;
constexpr char end_mark = '\x04';  // last byte of a complete answer

struct Child {
  pid_t pid;
  int fd;
  size_t index;
  Clock::time_point deadline;
  std::string text;
  bool timed_out = false;
};

Child start(size_t index, double timeout_s, const std::function<std::string(size_t)>& job) {
  int ends[2];
  if (pipe(ends) != 0) fail("cannot make a pipe: {}", std::strerror(errno));
  std::fflush(nullptr);
  pid_t pid = fork();
  if (pid < 0) fail("cannot start a process: {}", std::strerror(errno));
  if (pid == 0) {
    close(ends[0]);
    std::string text = job(index) + end_mark;
    for (size_t at = 0; at < text.size();) {
      ssize_t n = write(ends[1], text.data() + at, text.size() - at);
      if (n <= 0) _exit(1);
      at += static_cast<size_t>(n);
    }
    _exit(0);
  }
  close(ends[1]);
  auto limit = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(timeout_s));
  return {pid, ends[0], index, Clock::now() + limit, {}, false};
}

Outcome finish(Child& child, double timeout_s) {
  close(child.fd);
  int status = 0;
  waitpid(child.pid, &status, 0);
  if (child.timed_out) return {false, fmt::format("timed out after {} s", timeout_s)};
  if (!child.text.empty() && child.text.back() == end_mark) {
    child.text.pop_back();
    return {true, std::move(child.text)};
  }
  if (WIFSIGNALED(status)) return {false, fmt::format("crashed with signal {}", WTERMSIG(status))};
  return {false, fmt::format("ended with exit code {}", WEXITSTATUS(status))};
}

}  // namespace

void run_isolated(size_t count, int jobs, double timeout_s, const std::function<std::string(size_t)>& job,
                  const std::function<void(size_t, const Outcome&)>& report) {
  std::vector<Child> running;
  size_t next = 0;
  while (next < count || !running.empty()) {
    while (next < count && running.size() < static_cast<size_t>(jobs)) {
      running.push_back(start(next, timeout_s, job));
      ++next;
    }
    std::vector<pollfd> polls;
    for (const Child& child : running) polls.push_back({child.fd, POLLIN, 0});
    poll(polls.data(), polls.size(), 100);
    for (size_t i = running.size(); i-- > 0;) {
      Child& child = running[i];
      bool ended = false;
      if (polls[i].revents != 0) {
        char buffer[4096];
        ssize_t n = read(child.fd, buffer, sizeof buffer);
        if (n > 0)
          child.text.append(buffer, static_cast<size_t>(n));
        else
          ended = true;
      }
      if (!ended && Clock::now() > child.deadline) {
        child.timed_out = true;
        kill(child.pid, SIGKILL);
        ended = true;
      }
      if (!ended) continue;
      Outcome outcome = finish(child, timeout_s);
      report(child.index, outcome);
      running.erase(running.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
}

}  // namespace selkie::cli
