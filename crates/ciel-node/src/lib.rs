//! The pure machine of one machine: slots, queues, pools and budgets.
