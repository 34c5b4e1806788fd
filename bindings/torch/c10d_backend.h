/*
 * c10d_backend.h - a backend of torch.distributed over Espalier: dist.init_process_group("espalier").
 *
 * A thin layer of C++ over the C library, one source for torch 1.13 (where a backend is a ProcessGroup) and 2.x (where it is a
 * Backend). Every process group is a job of its own, joined through the store that torch gives.
 */
#pragma once

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <torch/version.h>
#if TORCH_VERSION_MAJOR >= 2
#include <torch/csrc/distributed/c10d/Backend.hpp>
#endif

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <unordered_set>

#include "espalier/espalier.h"

namespace espalier {

#if TORCH_VERSION_MAJOR >= 2
using Base = c10d::Backend;
#else
using Base = c10d::ProcessGroup;
#endif
using Tensors = std::vector<at::Tensor>;

class Backend;

/*
 * Who is in the library with something of a backend's holds the lock, shared; who closes the backend waits until nobody does. It
 * is there as long as anybody has a call.
 */
struct Door {
	std::shared_timed_mutex lock;
	bool open = true;
};
using Inside = std::shared_lock<std::shared_timed_mutex>;

/*
 * One call. It lives in its backend's list until it has ended, whoever holds it: the library uses its memory. What is left to do
 * then (results that lie elsewhere, tensors of a GPU) is done by whoever comes first: a caller in wait(), or the backend's thread.
 */
class Call : public c10d::Work {
public:
	Call(Backend *backend, c10d::OpType kind, int rank);
	~Call() override;

	bool wait(std::chrono::milliseconds timeout = kNoTimeout) override;
	bool isCompleted() override;
	bool isSuccess() const override;
	std::exception_ptr exception() const override;
	int sourceRank() const override;
	Tensors result() override;
	void synchronize() override;
	void abort() override;
	c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;

private:
	friend class Backend;

	std::exception_ptr ask();
	void complete();
	void restore();
	void end(std::exception_ptr failure);
	bool has_ended() const; /* inside */
	void open_gate();
	unsigned forgo_callbacks(); /* inside */
	void let_go(unsigned forgone);
	void hand_over();

	Backend *backend_;
	std::shared_ptr<Door> door_;           /* of the context, to which works_ belong                 */
	Inside starting_;                      /* held while it is made                                  */
	std::vector<esp_work *> works_;        /* all must end; no more are added once the first could   */
	std::atomic<unsigned> unfinished_{0};
	std::atomic<bool> claimed_{false};
	std::atomic<bool> has_callbacks_{false}; /* its future was given out: callbacks may wait for other calls */
	std::atomic<bool> is_awaited_{false};  /* somebody has waited for it, and has asked for no callback */
	Tensors held_;                         /* what the library reads and writes                      */
	Tensors outputs_;
	std::function<void()> finish_;         /* results go where they are wanted; empty: they are      */
	std::function<bool(Call &)> more_;     /* starts what follows; true: the call has not ended yet  */
	bool chained_ = false;                 /* it had that: only the backend's thread completes it    */
	std::exception_ptr failure_;           /* what followed could not be started                     */
	c10::intrusive_ptr<c10::ivalue::Future> future_;
	std::vector<uint64_t> row_, table_;    /* alltoall with blocks of different sizes                */
	int source_ = -1;

	/* Tensors of an accelerator: copied to the host before, and back after. */
	c10::optional<c10::Device> device_;
	std::unique_ptr<c10::Event> staged_;   /* the host's copy is complete                            */
	std::unique_ptr<c10::Event> called_;   /* all that the caller had queued before the call         */
	std::unique_ptr<c10::Event> restored_; /* the results are back                                   */
	c10::optional<c10::Stream> back_;      /* the stream on which they come                          */
	uint64_t gate_ = 0;
};

class Backend : public Base {
public:
	/* One that close_all() knows of. */
	static c10::intrusive_ptr<Backend> create(const c10::intrusive_ptr<c10d::Store> &store, int rank, int size,
	                                          std::chrono::milliseconds timeout);
	Backend(const c10::intrusive_ptr<c10d::Store> &store, int rank, int size, std::chrono::milliseconds timeout);
	~Backend() override;
	void release_resources() override; /* the last who held it has let go; close_all() may still know of it */

	using Works = c10::intrusive_ptr<c10d::Work>;

	const std::string getBackendName() const override
	{
		return "espalier";
	}

	Works broadcast(Tensors &tensors, const c10d::BroadcastOptions &opts) override;
	Works allreduce(Tensors &tensors, const c10d::AllreduceOptions &opts) override;
	Works allreduce_coalesced(Tensors &tensors, const c10d::AllreduceCoalescedOptions &opts) override;
	Works reduce(Tensors &tensors, const c10d::ReduceOptions &opts) override;
	Works allgather(std::vector<Tensors> &outputs, Tensors &inputs, const c10d::AllgatherOptions &opts) override;
	Works _allgather_base(at::Tensor &output, at::Tensor &input, const c10d::AllgatherOptions &opts) override;
	Works allgather_coalesced(std::vector<Tensors> &outputs, Tensors &inputs, const c10d::AllgatherOptions &opts) override;
	Works gather(std::vector<Tensors> &outputs, Tensors &inputs, const c10d::GatherOptions &opts) override;
	Works scatter(Tensors &outputs, std::vector<Tensors> &inputs, const c10d::ScatterOptions &opts) override;
	Works reduce_scatter(Tensors &outputs, std::vector<Tensors> &inputs, const c10d::ReduceScatterOptions &opts) override;
	Works _reduce_scatter_base(at::Tensor &output, at::Tensor &input, const c10d::ReduceScatterOptions &opts) override;
#if TORCH_VERSION_MAJOR >= 2
	Works allgather_into_tensor_coalesced(Tensors &outputs, Tensors &inputs, const c10d::AllgatherOptions &opts) override;
	Works reduce_scatter_tensor_coalesced(Tensors &outputs, Tensors &inputs, const c10d::ReduceScatterOptions &opts) override;
#endif
	Works alltoall_base(at::Tensor &output, at::Tensor &input, std::vector<int64_t> &output_splits,
	                    std::vector<int64_t> &input_splits, const c10d::AllToAllOptions &opts) override;
	Works alltoall(Tensors &outputs, Tensors &inputs, const c10d::AllToAllOptions &opts) override;
	Works send(Tensors &tensors, int to, int tag) override;
	Works recv(Tensors &tensors, int from, int tag) override;
	Works recvAnysource(Tensors &tensors, int tag) override;
	Works barrier(const c10d::BarrierOptions &opts) override;
	void monitoredBarrier(const c10d::BarrierOptions &opts, bool wait_all_ranks) override;
	void setSequenceNumberForGroup() override {}
	uint64_t getSequenceNumberForGroup() override;

	/*
	 * Leaves the job; calls are refused from then on. close_all() is for the end of Python: whoever lets go of a tensor may
	 * need Python's lock, and a thread that wants it once Python has gone is ended by force. So it also waits for the threads.
	 */
	void close();
	static void close_all();

	/* Ends every call, here and on the other ranks. From inside, or by the backend's own thread. */
	void stop(const std::string &reason);

	int64_t deadline_ns(std::chrono::milliseconds wish) const;

	/* See the function. False also if the backend has been closed. */
	bool share(const at::Tensor &tensor);

private:
	friend class Call;

	c10::intrusive_ptr<Call> begin(c10d::OpType kind);
	Works launch(c10::intrusive_ptr<Call> call, bool is_message = false);
	void start(Call &call, esp_call &request, std::chrono::milliseconds timeout);
	static void ended(void *context, esp_work *work, esp_status status);

	/* Tensors as the library can use them: contiguous, on the host; what had to be copied is copied back at the end, if it is an output. */
	at::Tensor usable(Call &call, const at::Tensor &tensor, bool read, bool write);
	Tensors usable(Call &call, const Tensors &tensors, bool read, bool write);
	void stage(Call &call);
	Works blocks(c10d::OpType kind, esp_collective collective, const Tensors &in, const Tensors &out, int root,
	             const c10d::ReduceOp *op, std::chrono::milliseconds timeout);
	Works exchange(c10d::OpType kind, const Tensors &in, const Tensors &out, std::chrono::milliseconds timeout);

	Works allreduce_sparse(at::Tensor &tensor, const c10d::AllreduceOptions &opts);

	bool add_thread();
	void keep_spare(); /* lock_ is held */
	void expect_callbacks();
	void run();
	void take_turn(std::unique_lock<std::mutex> &guard);
	bool settle_next(std::unique_lock<std::mutex> &guard, const Door &door);
	void await_threads(unsigned own);
	void settle(Call *call);
	void forget(Call *call);
	void ask_about(Call *call);
	bool look_around();

	std::chrono::milliseconds timeout_;
	esp_context *context_ = nullptr;
	esp_group *world_ = nullptr;
	std::shared_ptr<Door> door_ = std::make_shared<Door>();
	std::mutex lock_;
	std::condition_variable wake_;
	std::unordered_set<Call *> live_;                 /* each holds a reference */
	std::deque<Call *> ended_;                        /* of live_: to be completed */
	std::deque<Call *> staging_;                      /* of live_: their copies to the host are under way */
	std::deque<Call *> messages_;                     /* of live_: nobody tells of their end: they are asked */
	std::atomic<bool> quits_{false};                  /* set while lock_ is held */
	unsigned threads_ = 0, settling_ = 0;             /* own threads; those that settle a call */
	bool is_looked_after_ = false;                    /* a thread asks for messages and copies */
	std::condition_variable gone_;                    /* a thread of its own has ended */
	std::atomic<bool> closed_{false};
	std::atomic<uint64_t> sequence_{0}, keys_{0};
};

/*
 * Moves the tensor, and all views of it, to memory of the context, if it is large, on the host, and has all of a storage that torch has
 * made. No call may use it. True: it is there, perhaps since before. Throws if there is no memory for it.
 */
bool share(const at::Tensor &tensor, esp_context *context);

} // namespace espalier
